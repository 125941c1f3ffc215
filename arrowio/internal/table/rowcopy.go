package table

import (
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// rowCopier puts a row together, value by value where need be.
type rowCopier struct {
	w     *walk
	field *Field
	size  int // bytes of a value, 0 for bits

	decoded *Decoded
	batch   int32
	record  int // index into the step's records

	dst   []byte
	nulls []bool
	any   bool // some value is null
}

// open makes the row's record batch readable.
func (c *rowCopier) open(row *copiedRow) error {
	s := c.w.s
	c.record = int(row.record)
	if c.decoded != nil && c.batch == row.batch {
		return nil
	}
	c.decoded, c.batch = nil, row.batch
	t := s.g.table
	if !s.encoded || !t.Store.Encoded(t.File(row.batch)) {
		return nil
	}
	if c.w.ctx == nil {
		c.w.ctx, c.w.stop = t.Gate.Join(s.ctx)
	}
	var err error
	c.decoded, err = t.Store.Decode(c.w.ctx, row.batch, c.w.r.number)
	return err
}

// address gives the address of the row that was put together.
func (c *rowCopier) address() uintptr {
	if c.size == 0 {
		return gather.BitAddress(address(c.dst), 0)
	}
	return address(c.dst)
}

// node copies count elements of a node, from start on, to the values from at
// on.
func (c *rowCopier) node(n int, start, count int64, at int) error {
	node, plane := &c.field.Nodes[n], &c.w.r.column.Planes[n]
	if plane.Shift != nil {
		start += plane.Shift[c.batch]
	}
	valid, err := c.valid(n, start, count)
	if err != nil {
		return err
	}
	switch {
	case node.Kind == List:
		return c.lists(n, start, count, at, valid)
	case node.Kind == Fixed && valid == nil:
		return c.node(n+1, start*int64(node.Size), count*int64(node.Size), at)
	case node.Kind == Fixed:
		return c.each(n, count, at, valid, func(k int64, at int) error {
			return c.node(n+1, (start+k)*int64(node.Size), int64(node.Size), at)
		})
	case node.Kind == Coded:
		return c.codes(n, start, count, at, valid)
	}
	return c.values(n, start, count, at, valid)
}

// each calls do for every element that is not null, and marks the values of
// those that are.
func (c *rowCopier) each(n int, count int64, at int, valid []byte, do func(k int64, at int) error) error {
	values := 1
	for _, node := range c.field.Nodes[n : len(c.field.Nodes)-1] {
		values *= node.Size
	}
	for k := range count {
		if valid != nil && valid[k] == 0 {
			c.any = true
			for v := range values {
				c.nulls[at+v] = true
			}
		} else if err := do(k, at); err != nil {
			return err
		}
		at += values
	}
	return nil
}

func (c *rowCopier) lists(n int, start, count int64, at int, valid []byte) error {
	node := &c.field.Nodes[n]
	width := node.Width
	offsets, err := c.bytes(n, start*int64(width), (count+1)*int64(width))
	if err != nil {
		return err
	}
	length := c.length(n + 1)
	return c.each(n, count, at, valid, func(k int64, at int) error {
		from, to := Integer(offsets[int(k)*width:], width), Integer(offsets[int(k+1)*width:], width)
		if to-from != int64(node.Size) {
			return c.w.ragged(c.record, n, to-from)
		}
		if from < 0 || from > length-int64(node.Size) {
			return c.w.damaged(c.record, "its list begins at element %d of %d", from, length)
		}
		return c.node(n+1, from, int64(node.Size), at)
	})
}

func (c *rowCopier) codes(n int, start, count int64, at int, valid []byte) error {
	node := &c.field.Nodes[n]
	codes, err := c.bytes(n, start*int64(node.Width), count*int64(node.Width))
	if err != nil {
		return err
	}
	return c.each(n, count, at, valid, func(k int64, at int) error {
		row, err := c.w.lookUp(c.record, node, codes[int(k)*node.Width:])
		if err == nil {
			copy(c.dst[at*c.size:], row)
		}
		return err
	})
}

func (c *rowCopier) values(n int, start, count int64, at int, valid []byte) error {
	if c.size == 0 {
		bits, err := c.bytes(n, start>>3, (start+count+7)>>3-start>>3)
		if err != nil {
			return err
		}
		return c.each(n, count, at, valid, func(k int64, at int) error {
			bit := start&7 + k
			c.dst[at>>3] |= bits[bit>>3] >> (bit & 7) & 1 << (at & 7)
			return nil
		})
	}
	size := int64(c.size)
	values, err := c.bytes(n, start*size, count*size)
	if err != nil {
		return err
	}
	if valid == nil {
		copy(c.dst[at*c.size:], values)
		return nil
	}
	return c.each(n, count, at, valid, func(k int64, at int) error {
		copy(c.dst[at*c.size:], values[k*size:(k+1)*size])
		return nil
	})
}

// valid gives a byte 0 or 1 per element, or nil if none is null.
func (c *rowCopier) valid(n int, start, count int64) ([]byte, error) {
	first, length := start>>3, (start+count+7)>>3-start>>3
	var bits []byte
	if c.decoded != nil {
		if bits = c.decoded.Nodes[n].Valid; bits == nil {
			return nil, nil
		}
		if first+length > int64(len(bits)) {
			return nil, c.w.damaged(c.record, "its validity lies beyond %d bytes", len(bits))
		}
		bits = bits[first : first+length]
	} else {
		plane := &c.w.r.column.Planes[n]
		if plane.Valid == nil || plane.Valid[c.batch] < 0 {
			return nil, nil
		}
		var err error
		if bits, err = c.at(plane.Valid[c.batch]+first, length); err != nil {
			return nil, err
		}
	}
	if allSet(bits, start&7, count) {
		return nil, nil
	}
	out := make([]byte, count)
	for k := range count {
		bit := start&7 + k
		out[k] = bits[bit>>3] >> (bit & 7) & 1
	}
	return out, nil
}

// bytes gives a range of a node's data.
func (c *rowCopier) bytes(n int, off, length int64) ([]byte, error) {
	if c.decoded == nil {
		return c.at(c.w.r.column.Planes[n].Data[c.batch]+off, length)
	}
	data := c.decoded.Nodes[n].Data
	if off < 0 || length < 0 || off > int64(len(data))-length {
		return nil, c.w.damaged(c.record, "its values lie beyond %d bytes", len(data))
	}
	return data[off : off+length], nil
}

// at gives a range of the record batch's file, or of memory.
func (c *rowCopier) at(position, length int64) ([]byte, error) {
	s, t := c.w.s, c.w.s.g.table
	if base := s.base[c.record]; base != 0 || t.Store == nil {
		return view(base+uintptr(position), length), nil
	}
	c.w.spans = append(c.w.spans[:0], resident.Span{File: int(t.File(c.batch)), Offset: position, Length: int(length)})
	if err := c.w.acquire(); err != nil {
		return nil, err
	}
	return view(c.w.to[0], length), nil
}

// length gives the number of elements of a node in the record batch.
func (c *rowCopier) length(n int) int64 {
	if c.decoded != nil {
		return c.decoded.Nodes[n].Length
	}
	return c.w.r.column.Planes[n].Length[c.batch]
}
