package audit

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// indices checks that indices lie in the dictionary.
func (c *column) indices() error {
	t, n := c.Stored(), c.batch.dictionaryLen(c.Field.Dictionary.ID)
	b, err := c.data(0)
	if err != nil {
		return err
	}
	width := int64(t.BitWidth / 8)
	if !isInteger(t) {
		return c.fault("its indices are of the type %v", t)
	}
	return c.pieces(b, width, c.node().Length, func(first int64, values []byte) error {
		bitmap, err := c.valid(first, int64(len(values))/width)
		if err != nil {
			return err
		}
		for i := range len(values) / int(width) {
			if isNull(bitmap, i) {
				continue
			}
			if index := integer(values, i, width, t.Signed); index < 0 || index >= n {
				return c.fault("value %d has index %d in a dictionary of %d", first+int64(i), index, n)
			}
		}
		return nil
	})
}

// isInteger reports whether a type is one of Arrow's integer types. Damaged
// metadata may contain other widths.
func isInteger(t *arrowmeta.Type) bool {
	return t.Kind == arrowmeta.Int && slices.Contains([]int{8, 16, 32, 64}, t.BitWidth)
}

// offsets visits the begin and end of every value. Offsets must not decrease or
// exceed limit. An error names the unit of limit by what, such as "bytes".
func (c *column) offsets(width, limit int64, what string, visit func(i, from, to int64) error) error {
	n := c.node().Length
	if n == 0 {
		return nil // a column of no values may have no offset
	}
	b, err := c.data(0)
	if err != nil {
		return err
	}
	last := int64(-1)
	return c.pieces(b, width, n+1, func(first int64, values []byte) error {
		for k := range len(values) / int(width) {
			i, next := first+int64(k), integer(values, k, width, true)
			switch {
			case next < 0 || next > limit:
				return c.fault("offset %d is %d, but there are %d %s", i, next, limit, what)
			case next < last:
				return c.fault("offset %d is %d, less than the one before, %d", i, next, last)
			}
			if i > 0 {
				if err := visit(i-1, last, next); err != nil {
					return err
				}
			}
			last = next
		}
		return nil
	})
}

// lists audits the offsets of a list column into the values of its child.
func (c *column) lists(width int64) error {
	return c.offsets(width, c.childLen(0), "values", func(_, _, _ int64) error { return nil })
}

// entries audits a map: lists of keys and values. Keys must not be null.
func (c *column) entries() error {
	if nulls := c.childNulls(0); nulls > 0 {
		return c.fault("%d of its entries are null", nulls)
	}
	if entries := c.child(0); len(entries.Children) > 0 && entries.childNulls(0) > 0 {
		return c.fault("%d of its keys are null", entries.childNulls(0))
	}
	return c.lists(4)
}

// text audits the offsets of strings or binary values into their bytes, and checks
// that strings are UTF-8.
func (c *column) text(width int64) error {
	data, err := c.data(1)
	if err != nil {
		return err
	}
	kind := c.Field.Type.Kind
	if kind != arrowmeta.String && kind != arrowmeta.LargeString {
		err := c.offsets(width, data.Size(), "bytes", func(_, _, _ int64) error { return nil })
		if err != nil {
			return err
		}
		return c.pieces(data, 1, data.Size(), func(int64, []byte) error { return nil })
	}
	w := window{column: c, buffer: data}
	var bitmap []byte
	return c.offsets(width, data.Size(), "bytes", func(i, from, to int64) (err error) {
		if i%pieceLen == 0 {
			if bitmap, err = c.valid(i, min(pieceLen, c.node().Length-i)); err != nil {
				return err
			}
		}
		if isNull(bitmap, int(i%pieceLen)) {
			return nil
		}
		ok, err := w.utf8(from, to)
		if err == nil && !ok {
			return c.fault("value %d is not UTF-8", i)
		}
		return err
	})
}

// listViews audits the offsets and sizes of list views, which may be in any order.
func (c *column) listViews(width int64) error {
	offsets, err := c.data(0)
	if err != nil {
		return err
	}
	sizes, err := c.data(1)
	if err != nil {
		return err
	}
	limit, memory := c.childLen(0), make([]byte, min(pieceLen, c.node().Length)*width)
	return c.pieces(offsets, width, c.node().Length, func(first int64, values []byte) error {
		lengths := memory[:len(values)]
		if err := c.read(sizes, lengths, first*width); err != nil {
			return err
		}
		bitmap, err := c.valid(first, int64(len(values))/width)
		if err != nil {
			return err
		}
		for i := range len(values) / int(width) {
			from, size := integer(values, i, width, true), integer(lengths, i, width, true)
			if !isNull(bitmap, i) && (from < 0 || size < 0 || from > limit-size) {
				return c.fault("value %d is a list of %d values from %d on, but there are %d", first+int64(i), size, from, limit)
			}
		}
		return nil
	})
}

// viewBytes is the size of a view: a length, then a value of up to 12 bytes. After
// the length of a longer value come its first 4 bytes, the number of its data
// buffer, and its offset in that buffer.
const (
	viewBytes = 16
	inPlace   = 12
)

// views audits views of strings or bytes.
func (c *column) views() error {
	b, err := c.data(0)
	if err != nil {
		return err
	}
	first := 1
	if c.Validity {
		first = 2
	}
	long := make([]window, len(c.batch.Buffers(c.Column))-first)
	for i := range long {
		long[i].column = c
		if long[i].buffer, err = c.open(first + i); err != nil {
			return err
		}
	}
	return c.pieces(b, viewBytes, c.node().Length, func(first int64, values []byte) error {
		bitmap, err := c.valid(first, int64(len(values)/viewBytes))
		if err != nil {
			return err
		}
		for i := range len(values) / viewBytes {
			if isNull(bitmap, i) {
				continue
			}
			if err := c.view(first+int64(i), values[viewBytes*i:viewBytes*(i+1)], long); err != nil {
				return err
			}
		}
		return nil
	})
}

// view audits one view. The data buffers of longer values are in long.
func (c *column) view(number int64, view []byte, long []window) error {
	n := integer(view, 0, 4, true)
	if n < 0 {
		return c.fault("value %d has %d bytes", number, n)
	}
	text := c.Field.Type.Kind == arrowmeta.StringView
	if n <= inPlace {
		if text && !utf8.Valid(view[4:4+n]) {
			return c.fault("value %d is not UTF-8", number)
		}
		return nil
	}
	which, off := integer(view, 2, 4, true), integer(view, 3, 4, true)
	if which < 0 || which >= int64(len(long)) {
		return c.fault("value %d is in data buffer %d of %d", number, which, len(long))
	}
	w := &long[which]
	if off < 0 || off > w.buffer.Size()-n {
		return c.fault("value %d has %d bytes from %d on in a data buffer of %d", number, n, off, w.buffer.Size())
	}
	begin, err := w.slice(off, 4)
	if err != nil {
		return err
	}
	if !bytes.Equal(begin, view[4:8]) {
		return c.fault("value %d begins with %q, but its view says %q", number, begin, view[4:8])
	}
	if !text {
		return nil
	}
	ok, err := w.utf8(off, off+n)
	if err == nil && !ok {
		return c.fault("value %d is not UTF-8", number)
	}
	return err
}

// union audits which child holds each value and, in a dense union, at which
// position.
func (c *column) union() error {
	t, n := &c.Field.Type, c.node().Length
	ids := t.TypeIDs
	if ids == nil {
		for i := range c.Children {
			ids = append(ids, i)
		}
	}
	types, err := c.data(0)
	if err != nil {
		return err
	}
	var offsets buffer
	var memory []byte
	if t.Dense {
		if offsets, err = c.data(1); err != nil {
			return err
		}
		memory = make([]byte, 4*min(pieceLen, n))
	}
	return c.pieces(types, 1, n, func(first int64, values []byte) error {
		if t.Dense {
			if err := c.read(offsets, memory[:4*len(values)], 4*first); err != nil {
				return err
			}
		}
		for i := range values {
			id := int(int8(values[i]))
			child := slices.Index(ids, id)
			if child < 0 || child >= len(c.Children) {
				return c.fault("value %d has the type %d, which the union does not have", first+int64(i), id)
			}
			if !t.Dense {
				continue
			}
			if at, have := integer(memory, i, 4, true), c.childLen(child); at < 0 || at >= have {
				return c.fault("value %d is number %d of the %d values of child %d", first+int64(i), at, have, child)
			}
		}
		return nil
	})
}

// runs audits the ends of runs. They must increase, and the last must not be less
// than the number of values.
func (c *column) runs() error {
	ends := c.child(0)
	if !isInteger(ends.Stored()) || ends.Field.Dictionary != nil {
		return c.fault("the ends of its runs are of the type %s", ends.Field.TypeString())
	}
	node, n := ends.node(), c.node().Length
	if node.Nulls > 0 {
		return c.fault("%d ends of its runs are null", node.Nulls)
	}
	if values := c.childLen(1); c.Children[1].Located && values != node.Length {
		return c.fault("%d runs have %d values", node.Length, values)
	}
	b, err := ends.data(0)
	if err != nil {
		return err
	}
	width, last := int64(ends.Field.Type.BitWidth/8), int64(0)
	err = c.pieces(b, width, node.Length, func(first int64, values []byte) error {
		for i := range len(values) / int(width) {
			end := integer(values, i, width, true)
			if end <= last {
				return c.fault("run %d ends at %d, and the one before at %d", first+int64(i), end, last)
			}
			last = end
		}
		return nil
	})
	if err == nil && last < n {
		return c.fault("the runs end at %d, but there are %d values", last, n)
	}
	return err
}
