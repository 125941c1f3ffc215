package arrowmeta

import (
	"fmt"
	"math"
)

// MaxRows bounds the rows of one record batch. Columns without buffers, such as
// nulls, could otherwise claim any number.
const MaxRows = 1 << 40

// check compares a decoded batch with the schema, and with the size of its body in
// bytes.
func (l *layout) check(b *RecordBatch, body int64) error {
	if b.Length < 0 || b.Length > MaxRows {
		return fmt.Errorf("%d rows", b.Length)
	}
	if err := l.checkCounts(b); err != nil {
		return err
	}
	for i, r := range b.buffers {
		if r.Offset < 0 || r.Length < 0 || r.Offset > body-r.Length {
			return fmt.Errorf("buffer %d of %d bytes at %d lies outside the body of %d bytes", i, r.Length, r.Offset, body)
		}
	}
	for _, c := range l.flat {
		if err := c.check(b); err != nil {
			return fmt.Errorf("column %q: %w", c.Field.Name, err)
		}
	}
	for i := range l.columns {
		c := &l.columns[i]
		if c.Located && b.Node(c).Length != b.Length {
			return fmt.Errorf("column %q has %d values, but the batch has %d rows", c.Field.Name, b.Node(c).Length, b.Length)
		}
	}
	return nil
}

// checkCounts compares the numbers of nodes and buffers with what the schema
// needs. If the schema has an unknown type, more are allowed.
func (l *layout) checkCounts(b *RecordBatch) error {
	differ := func(have, want int) bool { return have < want || have > want && !l.open }
	if differ(len(b.variadic), l.views) {
		return fmt.Errorf("%d counts of data buffers, but %d view columns", len(b.variadic), l.views)
	}
	b.before = b.before[:0]
	data := 0
	for _, n := range b.variadic[:l.views] {
		if n < 0 || n > int64(len(b.buffers)-data) {
			return fmt.Errorf("%d data buffers of a view column", n)
		}
		data += int(n)
		b.before = append(b.before, data)
	}
	if differ(len(b.nodes), len(l.flat)) {
		return fmt.Errorf("%d nodes, but the schema needs %d", len(b.nodes), len(l.flat))
	}
	if differ(len(b.buffers), l.buffers+data) {
		return fmt.Errorf("%d buffers, but the schema needs %d", len(b.buffers), l.buffers+data)
	}
	return nil
}

// check compares the column's node with its buffers and its children's nodes.
func (c *Column) check(b *RecordBatch) error {
	node := b.Node(c)
	if node.Length < 0 || node.Nulls < 0 || node.Nulls > node.Length {
		return fmt.Errorf("%d nulls among %d values", node.Nulls, node.Length)
	}
	for i, r := range b.Buffers(c) {
		need, ok := c.MinBytes(i, node.Length)
		if i == 0 && c.Validity && node.Nulls == 0 {
			need = 0 // the bitmap may be left out
		}
		if b.Compression != Uncompressed && (need > 0 || r.Length > 0) {
			need, ok = 8, true // a compressed buffer begins with 8 bytes: its decompressed size
		}
		if !ok || r.Length < need {
			return fmt.Errorf("buffer %d has %d bytes, too few for %d values", i, r.Length, node.Length)
		}
	}
	return c.checkChildren(b, node.Length)
}

// checkChildren returns an error if a child has fewer values than the parent needs. It
// skips types if the length of children does not follow from the parent's length.
func (c *Column) checkChildren(b *RecordBatch, length int64) error {
	if c.Field.Dictionary != nil {
		return nil
	}
	each := int64(0)
	switch t := &c.Field.Type; {
	case t.Kind == FixedSizeList:
		each = int64(t.ListSize)
	case t.Kind == Struct, t.Kind == Union && !t.Dense:
		each = 1
	}
	if each > 0 && length > math.MaxInt64/each {
		return fmt.Errorf("%d lists of %d values", length, each)
	}
	for i := range c.Children {
		child := &c.Children[i]
		if child.Located && b.Node(child).Length < length*each {
			return fmt.Errorf("child %q has %d values instead of %d", child.Field.Name, b.Node(child).Length, length*each)
		}
	}
	return nil
}
