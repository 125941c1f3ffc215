// Package levels turns the repetition and definition levels of Parquet into the offsets
// and validity bitmaps of Arrow ("Dremel: Interactive Analysis of Web-Scale Datasets",
// VLDB 2010, section 4; the format's page "Nested Encoding").
//
// Every entry of a column chunk has two levels. The repetition level tells which list the
// entry continues: 0 begins a row, and level i+1 adds an element to the current list i.
// The definition level tells how much of the path to the value is there. The largest
// stands for a value; with a smaller one, a node of the path is null, or a list is empty.
//
// Levels are stored in runs. A [Builder] adds a long run of values at once, so that a
// column without nulls and lists costs nothing per row. It adds all other entries 64 at a
// time, with operations on words that have a bit for each entry.
package levels

import (
	"fmt"
	"math/bits"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
)

// Shape holds the offsets and bitmaps of a column.
type Shape struct {
	Lists   []List // one for each repeated node, from the outermost
	Valid   Bitmap // validity of the values
	Outer   Bitmap // validity of the first nodes of the path; nil unless the path has two nodes, none of them repeated
	Values  int64  // slots of values, null or not
	Present int64  // values that are not null, which the pages hold
}

// List is a level of lists. List i has the elements Offsets[i] to Offsets[i+1].
type List struct {
	Offsets []int64 // one more than there are lists
	Valid   Bitmap
}

// Len returns the number of lists.
func (l *List) Len() int64 { return int64(len(l.Offsets)) - 1 }

// Builder builds a shape page by page.
type Builder struct {
	lists   []list
	valid   bitmapBuilder // validity of the values
	outer   bitmapBuilder // validity of the first of two nodes
	rows    int64
	present int64
	max     uint32 // definition level of a value
	first   uint32 // definition level from which on the first of two nodes is there; 0 if it always is

	repetitions, definitions segment
}

// list is a level of lists.
type list struct {
	element uint32 // definition level from which on an element is there
	offsets []int64
	valid   bitmapBuilder
	open    uint64 // 1 if the last entry is an element, so that the next may continue its list
}

// NewBuilder returns the builder for a leaf with levels of at most 255.
func NewBuilder(leaf *parquet.Leaf) *Builder {
	b := &Builder{max: uint32(leaf.MaxDefinition())}
	for _, n := range leaf.Nodes {
		if n.Repetition == parquet.Repeated {
			b.lists = append(b.lists, list{element: uint32(n.Definition)})
		}
	}
	if nodes := leaf.Nodes; len(nodes) == 2 && len(b.lists) == 0 {
		b.first = uint32(nodes[0].Definition)
	}
	return b
}

// Widths returns the numbers of bits of a repetition and of a definition level.
func (b *Builder) Widths() (repetition, definition int) {
	return bits.Len(uint(len(b.lists))), bits.Len32(b.max)
}

// Slots are the slots that a page adds to the values. They hold until the next page is added.
type Slots struct {
	Count, Present int // numbers of all slots, and of slots with a value, which the page holds
	first          int64
	valid          *bitmapBuilder
}

// Word returns a word with a one for each of 64 slots, from slot i of the page on, that has
// a value. The bits of slots that the page does not have are undefined.
func (s *Slots) Word(i int) uint64 { return s.valid.word(s.first + int64(i)) }

// Page adds the levels of a page, which has n entries. A column needs no runs if its levels
// have no bits.
func (b *Builder) Page(repetitions, definitions *encoding.Runs, n int) (Slots, error) {
	slots, present := b.valid.n, b.present
	r, d := &b.repetitions, &b.definitions
	r.runs, d.runs = repetitions, definitions
	for n > 0 {
		if err := r.fill(n); err != nil {
			return Slots{}, fmt.Errorf("repetition levels: %w", err)
		}
		if err := d.fill(n); err != nil {
			return Slots{}, fmt.Errorf("definition levels: %w", err)
		}
		m := min(r.left, d.left)
		if err := b.add(m); err != nil {
			return Slots{}, err
		}
		n -= m
	}
	return Slots{int(b.valid.n - slots), int(b.present - present), slots, &b.valid}, nil
}

// Finish returns the shape, if it has this number of rows.
func (b *Builder) Finish(rows int64) (*Shape, error) {
	if b.rows != rows {
		return nil, fmt.Errorf("%d rows instead of %d", b.rows, rows)
	}
	s := &Shape{Valid: b.valid.bitmap(), Outer: b.outer.bitmap(), Values: b.valid.n, Present: b.present}
	for i := range b.lists {
		l := &b.lists[i]
		s.Lists = append(s.Lists, List{append(l.offsets, b.elements(i)), l.valid.bitmap()})
	}
	return s, nil
}

// elements returns the number of elements of all lists of a level so far.
func (b *Builder) elements(i int) int64 {
	if i+1 < len(b.lists) {
		return int64(len(b.lists[i+1].offsets))
	}
	return b.valid.n
}

// add adds n entries, which both segments have.
func (b *Builder) add(n int) error {
	r, d := &b.repetitions, &b.definitions
	if r.same && r.value == uint32(len(b.lists)) && d.same && d.value == b.max && b.inside() {
		b.values(n)
		r.skip(n)
		d.skip(n)
		return nil
	}
	for ; n > 0; n -= 64 {
		m := min(n, 64)
		r.read()
		d.read()
		if err := b.entries(m); err != nil {
			return err
		}
		r.skip(m)
		d.skip(m)
	}
	return nil
}

// inside reports whether the last entry is an element of a list of the innermost level, or
// the column has no lists.
func (b *Builder) inside() bool { return len(b.lists) == 0 || b.lists[len(b.lists)-1].open == 1 }

// values adds n values. If there are lists, the values continue them.
func (b *Builder) values(n int) {
	if len(b.lists) == 0 {
		b.rows += int64(n)
	}
	if b.first > 0 {
		b.outer.repeat(n)
	}
	b.valid.repeat(n)
	b.present += int64(n)
}

// entries adds the next n entries, at most 64. Bit i of a word belongs to entry i.
func (b *Builder) entries(n int) error {
	all := ones(n)
	if err := b.check(all); err != nil {
		return err
	}
	r, d := &b.repetitions, &b.definitions
	b.rows += int64(bits.OnesCount64(all &^ r.from(1)))
	exists := all // entries with an element of the lists above
	for i := range b.lists {
		l, level := &b.lists[i], uint32(i)+1
		begins := exists &^ r.from(level)
		exists = all & d.from(l.element)
		further := r.from(level) &^ r.from(level+1) & all
		if further&^(exists&(exists<<1|l.open)) != 0 {
			return fmt.Errorf("repetition level %d continues a list that has no elements", level)
		}
		l.open = exists >> (n - 1)
		l.add(begins, exists&^r.from(level+1), d.from(l.element-1), b.elements(i))
	}
	valid := d.from(b.max) & all
	b.valid.add(extract(valid, exists), bits.OnesCount64(exists))
	b.present += int64(bits.OnesCount64(valid))
	if b.first > 0 {
		b.outer.add(d.from(b.first)&all, n)
	}
	return nil
}

// check checks the levels of the next entries one by one. All has a one for each entry.
func (b *Builder) check(all uint64) error {
	r, d, depth := &b.repetitions, &b.definitions, uint32(len(b.lists))
	if bad := r.from(depth+1) & all; bad != 0 {
		return fmt.Errorf("repetition level %d, of at most %d", r.level(bits.TrailingZeros64(bad)), depth)
	}
	if bad := d.from(b.max+1) & all; bad != 0 {
		return fmt.Errorf("definition level %d, of at most %d", d.level(bits.TrailingZeros64(bad)), b.max)
	}
	if b.rows == 0 && r.from(1)&1 == 1 {
		return fmt.Errorf("the first repetition level is %d", r.level(0))
	}
	return nil
}

// add adds the lists at the ones of begins and the elements at the ones of elements, before
// which there are n elements. The lists at the ones of valid are not null.
func (l *list) add(begins, elements, valid uint64, n int64) {
	l.valid.add(extract(valid, begins), bits.OnesCount64(begins))
	for ; begins != 0; begins &= begins - 1 {
		before := begins&-begins - 1
		l.offsets = append(l.offsets, n+int64(bits.OnesCount64(elements&before)))
	}
}
