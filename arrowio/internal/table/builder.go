package table

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// builder adds record batches in memory to a column, one after the other.
type builder struct {
	field  *arrowtype.Field
	column *Column
	reason string // why the column cannot be an array; empty if it can
}

// batch adds the buffers of one record batch. The table uses its rows
// [shift, shift+rows).
func (b *builder) batch(a *Array, shift, rows int64) error {
	need := rows // elements of the level that the rows use; 0 below a level with offsets
	for n, level := range b.field.Levels {
		if err := a.check(level); err != nil {
			return fmt.Errorf("level %d has %w", n, err)
		}
		if need > a.Length-shift {
			return fmt.Errorf("level %d has %d values, but %d are needed", n, a.Length, shift+need)
		}
		b.add(n, a, shift+a.Offset)
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
		if a = a.Child(); a == nil {
			return fmt.Errorf("level %d has not one child", n)
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
	if !b.column.hasNulls() && b.field.Direct() {
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
	count, first, last := a.Length, int64(0), len(f.Levels)-1 // first: where the values begin, in elements of the level
	for n, level := range f.Levels {
		if a.check(level) != nil {
			return fmt.Errorf("its dictionary does not fit its type")
		}
		if a.NullCount() != 0 {
			b.reason = "its dictionary holds nulls; drop them from the values"
			return nil
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
		a = a.Child()
	}
	size, row := f.Values().Size()/8, int64(f.RowBytes())
	if row > 0 && count > maxElements/row || first+count*row/size > a.Offset+a.Length {
		return fmt.Errorf("its dictionary has not enough values")
	}
	b.addDictionary(a.Buffers[1].At, first*size, count, row)
	return nil
}

func (b *builder) addDictionary(values unsafe.Pointer, offset, count, rowBytes int64) {
	d := &arrowtype.Dictionary{Len: count, Values: unsafe.Slice((*byte)(unsafe.Add(values, offset)), count*rowBytes)}
	d.From = int32(len(b.column.Planes[len(b.column.Planes)-1].Data) - 1)
	list := b.column.Dictionaries
	if len(list) > 0 {
		if last := list[len(list)-1]; last.Len == d.Len && unsafe.SliceData(last.Values) == unsafe.SliceData(d.Values) {
			return
		}
	}
	b.column.Dictionaries = append(list, d)
}
