package table

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// builder adds record batches in memory to a column, one after the other.
type builder struct {
	field  *arrowtype.Field
	column *buffers.Column
	reason string // why the column cannot be an array; empty if it can
	texts  *Array // the dictionary of the last batch, if it holds text
}

// batch adds the buffers of one record batch. The table uses its rows
// [shift, shift+rows).
func (b *builder) batch(a *Array, shift, rows int64) error {
	need := rows // elements of the level that the rows use; 0 below a level with offsets
	for n, level := range b.field.Levels {
		if b.field.Inline(n) {
			return b.text(n, a)
		}
		if err := a.check(b.field, n); err != nil {
			return fmt.Errorf("level %d has %w", n, err)
		}
		if need > a.Length-shift {
			return fmt.Errorf("level %d has %d values, but %d are needed", n, a.Length, shift+need)
		}
		b.add(n, a, shift+a.Offset)
		if n == len(b.field.Levels)-1 && b.field.HasViews() {
			return b.views(n, a)
		}
		list, nested := level.(arrowtype.List)
		switch {
		case !nested && b.field.Dictionary() != nil:
			return b.dictionary(a)
		case !nested:
			return nil
		case !list.Direct():
			shift, need = 0, 0 // the offsets are checked when rows are gathered
		default:
			end := shift + a.Offset + need
			if high, low := bits.Mul64(uint64(end), uint64(list.Length())); high != 0 || low > maxElements {
				return fmt.Errorf("level %d has lists of %d values, which is more than memory can hold", n, list.Length())
			}
			if need > 0 {
				need, _, _ = list.Children(end, 0, nil)
			}
			shift = 0
		}
		if b.field.Inline(n + 1) {
			continue
		}
		if a = a.Child(b.field.Child(n)); a == nil {
			return fmt.Errorf("level %d does not have the children of its type", n)
		}
	}
	return nil
}

// add adds the buffers of level n. The first element that is used is element
// shift of these buffers.
func (b *builder) add(n int, a *Array, shift int64) {
	p, valid := &b.column.Planes[n], int64(-1)
	if a.NullCount() != 0 {
		valid = int64(uintptr(a.Buffers[0].At))
	}
	p.Valid = append(p.Valid, valid)
	if len(a.Buffers) > 1 {
		p.Data = append(p.Data, int64(uintptr(a.Buffers[1].At)))
	}
	p.Length = append(p.Length, a.Length)
	p.Shift = append(p.Shift, shift)
}

// views adds the data buffers of views, which are level n.
func (b *builder) views(n int, a *Array) error {
	extents := make([]buffers.Extent, 0, len(a.Buffers)-2)
	for _, data := range a.Buffers[2:] {
		if data.Bytes < 0 || data.Bytes > 0 && data.At == nil {
			return fmt.Errorf("level %d has a data buffer of %d bytes without memory", n, data.Bytes)
		}
		extents = append(extents, buffers.Extent{At: int64(uintptr(data.At)), Bytes: data.Bytes})
	}
	b.column.Planes[n].Buffers = append(b.column.Planes[n].Buffers, extents)
	return nil
}

// text adds the bytes of text, which level n holds. Their number is known from the size of
// the buffer, or from the last offset.
func (b *builder) text(n int, a *Array) error {
	bytes := a.Buffers[2].Bytes
	if width := int(b.field.Levels[n-1].Buffer().Bits / 8); bytes < 0 {
		bytes = 0
		if a.Length > 0 {
			last := bytesAt(uintptr(a.Buffers[1].At)+uintptr(a.Offset+a.Length)*uintptr(width), int64(width))
			bytes = arrowtype.Integer(last, width)
		}
	}
	if bytes > 0 && a.Buffers[2].At == nil {
		return fmt.Errorf("level %d has no values", n)
	}
	p := &b.column.Planes[n]
	p.Valid, p.Shift = append(p.Valid, -1), append(p.Shift, 0)
	p.Data, p.Length = append(p.Data, int64(uintptr(a.Buffers[2].At))), append(p.Length, max(bytes, 0))
	return nil
}

// finish drops the lists of a level that are not needed: Valid if no batch has
// nulls, Shift if all its entries are zero, and Length if no level has offsets. If
// the column has no nulls, offsets or indices, finish adds the skipped elements to
// the addresses, so that Shift is zero.
func (b *builder) finish(batches int) {
	for n := range b.column.Planes {
		p := &b.column.Planes[n]
		if !slices.ContainsFunc(p.Valid, func(at int64) bool { return at >= 0 }) {
			p.Valid = nil
		}
	}
	if !b.column.Nulls().May && b.field.Direct() {
		for i := range batches {
			b.fold(i)
		}
	}
	for n := range b.column.Planes {
		p := &b.column.Planes[n]
		if !slices.ContainsFunc(p.Shift, func(shift int64) bool { return shift != 0 }) {
			p.Shift = nil
		}
		if b.field.LastOffsets() < 0 {
			p.Length = nil
		}
	}
}

// fold adds the elements that all levels skip to the address of the values, if
// these elements are whole bytes.
func (b *builder) fold(batch int) {
	elements, last := int64(0), len(b.field.Levels)-1
	for n := range b.field.Levels {
		elements += b.column.Planes[n].Shift[batch]
		if n < last {
			elements *= int64(b.field.List(n).Length())
		}
	}
	skip := elements * b.field.Values().Size()
	if skip%8 != 0 {
		return
	}
	b.column.Planes[last].Data[batch] += skip / 8
	for n := range b.field.Levels {
		b.column.Planes[n].Shift[batch] = 0
	}
}

// dictionary adds the dictionary of a record batch, unless the previous batch uses
// the same one.
func (b *builder) dictionary(indices *Array) error {
	f, a := b.field.Dictionary(), indices.Dictionary()
	if a == nil {
		return fmt.Errorf("it has no dictionary")
	}
	if b.sameTexts(a) {
		return nil
	}
	count, first, last := a.Length, int64(0), len(f.Levels)-1 // first: where the values begin, in elements of the level
	for n := range f.Levels {
		if f.Inline(n) {
			return b.textDictionary(n, a)
		}
		if a.check(f, n) != nil {
			return fmt.Errorf("its dictionary does not fit its type")
		}
		if a.NullCount() != 0 {
			b.reason = "its dictionary holds nulls; drop them from the values"
			return nil
		}
		if f.HasViews() {
			return b.viewDictionary(a)
		}
		if f.HasInline(n) {
			continue
		}
		first += a.Offset
		if n == last {
			break
		}
		length := int64(f.List(n).Length())
		if first > maxElements/max(length, 1) {
			return fmt.Errorf("its dictionary does not fit its type")
		}
		first *= length
		a = a.Child(0)
	}
	size, row := f.Values().Size()/8, int64(f.RowBytes())
	if row > 0 && count > maxElements/row || first+count*row/size > a.Offset+a.Length {
		return fmt.Errorf("its dictionary has not enough values")
	}
	b.addDictionary(a.Buffers[1].At, first*size, count, row)
	return nil
}

// sameTexts reports whether an array holds the texts of the last dictionary.
func (b *builder) sameTexts(a *Array) bool {
	f, last := b.field.Dictionary(), b.texts
	if !f.HasInline(0) && !f.HasViews() {
		return false
	}
	b.texts = a
	return last != nil && last.Length == a.Length && last.Offset == a.Offset && slices.Equal(last.Buffers, a.Buffers)
}

// viewDictionary adds a dictionary of text that is stored as views.
func (b *builder) viewDictionary(a *Array) error {
	column := &buffers.Column{Planes: make([]buffers.Plane, 1)}
	views := builder{field: b.field.Dictionary(), column: column}
	if err := views.views(0, a); err != nil {
		return fmt.Errorf("its dictionary: %w", err)
	}
	d, texts := &arrowtype.Dictionary{Len: a.Length}, [][]byte{}
	for _, data := range column.Planes[0].Buffers[0] {
		texts = append(texts, bytesAt(uintptr(data.At), data.Bytes))
	}
	from, length := b.field.Dictionary().Levels[0].Buffer().Bytes(a.Offset, a.Length)
	if a.Length > 0 {
		if err := d.SetViews(bytesAt(uintptr(a.Buffers[1].At)+uintptr(from), length), texts); err != nil {
			return fmt.Errorf("its dictionary is damaged: %w", err)
		}
	}
	b.appendDictionary(d)
	return nil
}

// textDictionary adds a dictionary of text with its bytes in level n.
func (b *builder) textDictionary(n int, a *Array) error {
	column := &buffers.Column{Planes: make([]buffers.Plane, n+1)}
	text := builder{field: b.field.Dictionary(), column: column}
	text.add(0, a, a.Offset)
	if err := text.text(n, a); err != nil {
		return fmt.Errorf("its dictionary: %w", err)
	}
	d := &arrowtype.Dictionary{Len: a.Length}
	if a.Length > 0 {
		size := text.field.Levels[0].Buffer()
		from, length := size.Bytes(a.Offset, a.Length)
		offsets := bytesAt(uintptr(column.Planes[0].Data[0]+from), length)
		values := bytesAt(uintptr(column.Planes[n].Data[0]), column.Planes[n].Length[0])
		if err := d.SetText(offsets, values, int(size.Bits/8)); err != nil {
			return fmt.Errorf("its dictionary is damaged: %w", err)
		}
	}
	b.appendDictionary(d)
	return nil
}

func (b *builder) addDictionary(values unsafe.Pointer, offset, count, rowBytes int64) {
	b.appendDictionary(&arrowtype.Dictionary{Len: count, Values: unsafe.Slice((*byte)(unsafe.Add(values, offset)), count*rowBytes)})
}

// appendDictionary adds a dictionary for the last batch, unless it is the dictionary of the batch
// before.
func (b *builder) appendDictionary(d *arrowtype.Dictionary) {
	d.From = int32(len(b.column.Planes[len(b.column.Planes)-1].Data) - 1)
	list := b.column.Dictionaries
	if len(list) > 0 {
		if last := list[len(list)-1]; d.Texts == nil && last.Len == d.Len && unsafe.SliceData(last.Values) == unsafe.SliceData(d.Values) {
			return
		}
	}
	b.column.Dictionaries = append(list, d)
}
