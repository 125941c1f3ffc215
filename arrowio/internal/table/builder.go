package table

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// builder finds the buffers of one column in one record batch after the other.
type builder struct {
	field  *Field
	column *Column
	reason string // why the column cannot be an array after all

	nulls      []bool // per node: some batch has nulls there
	dictionary *Dictionary
}

// maxElements bounds the elements of an array, so that sums and products of
// two bounded numbers do not overflow.
const maxElements = 1 << 46

// batch adds the buffers of one record batch, of which rows are asked from
// row shift on.
func (b *builder) batch(a *Array, shift, rows int64) error {
	if b.nulls == nil {
		b.nulls = make([]bool, len(b.field.Nodes))
	}
	need := rows // elements that the parent uses
	for n := range b.field.Nodes {
		if a == nil || a.Length < 0 || a.Length > maxElements || a.Offset < 0 || a.Offset > maxElements {
			return fmt.Errorf("level %d has no length or offset that can be", n)
		}
		if need > a.Length-shift {
			return fmt.Errorf("level %d has %d values, but %d are needed", n, a.Length, shift+need)
		}
		if err := b.node(n, a, shift+a.Offset); err != nil {
			return err
		}
		node := &b.field.Nodes[n]
		switch node.Kind {
		case Values:
			return nil
		case Coded:
			return b.coded(a)
		case Fixed:
			size := int64(node.Size)
			if hi, _ := bits.Mul64(uint64(shift+a.Offset+need), uint64(size)); hi != 0 || (shift+a.Offset+need)*size > maxElements {
				return fmt.Errorf("level %d has lists of %d values, which is more than memory can hold", n, size)
			}
			if need > 0 {
				need = (shift + a.Offset + need) * size
			}
			shift = 0
		default:
			shift, need = 0, 0 // the offsets are checked when rows are gathered
		}
		if a = a.Child(); a == nil {
			return fmt.Errorf("level %d has not one child", n)
		}
	}
	return nil
}

// node adds the buffers of one level.
func (b *builder) node(n int, a *Array, shift int64) error {
	kind, p := b.field.Nodes[n].Kind, &b.column.Planes[n]
	if err := a.check(&b.field.Nodes[n]); err != nil {
		return fmt.Errorf("level %d has %w", n, err)
	}
	valid := int64(-1)
	if a.NullCount() != 0 {
		valid = int64(uintptr(a.Buffers[0].At))
		b.nulls[n] = true
	}
	p.Valid = append(p.Valid, valid)
	if kind != Fixed {
		p.Data = append(p.Data, int64(uintptr(a.Buffers[1].At)))
	}
	p.Length = append(p.Length, a.Length)
	p.Shift = append(p.Shift, shift)
	return nil
}

// finish drops the lists that say nothing, and moves offsets into addresses
// where that makes every row's address follow from its number.
func (b *builder) finish(batches int) {
	nulls := false
	for n := range b.field.Nodes {
		nulls = nulls || b.nulls != nil && b.nulls[n]
		if b.nulls == nil || !b.nulls[n] {
			b.column.Planes[n].Valid = nil
		}
	}
	last := len(b.field.Nodes) - 1
	lists := false
	for n := range b.field.Nodes[:last] {
		lists = lists || b.field.Nodes[n].Kind == List
	}
	if !nulls && !lists && b.field.Nodes[last].Kind == Values {
		for i := range batches {
			b.fold(i)
		}
	}
	for n := range b.column.Planes {
		if !slices.ContainsFunc(b.column.Planes[n].Shift, func(shift int64) bool { return shift != 0 }) {
			b.column.Planes[n].Shift = nil
		}
		if !lists {
			b.column.Planes[n].Length = nil
		}
	}
}

// fold adds the offsets of all levels to the address of the values, as far as
// they make whole bytes.
func (b *builder) fold(batch int) {
	elements, last := int64(0), len(b.field.Nodes)-1
	for n := range b.field.Nodes {
		elements += b.column.Planes[n].Shift[batch]
		if n < last {
			elements *= int64(b.field.Nodes[n].Size)
		}
	}
	width := int64(8 * b.field.Nodes[last].Size)
	if width == 0 {
		width = 1
	}
	if elements*width%8 != 0 {
		return
	}
	b.column.Planes[last].Data[batch] += elements * width / 8
	for n := range b.field.Nodes {
		b.column.Planes[n].Shift[batch] = 0
	}
}

// coded adds the dictionary of a record batch, unless it is that of the batch
// before.
func (b *builder) coded(indices *Array) error {
	f, a := b.field.Values, indices.Dictionary()
	if a == nil {
		return fmt.Errorf("it has no dictionary")
	}
	count, rowBytes := a.Length, int64(f.RowBytes())
	first := int64(0) // of the values, in elements of the level
	for n := range f.Nodes {
		if a == nil || a.Length < 0 || a.Length > maxElements || a.Offset < 0 || a.Offset > maxElements || a.check(&f.Nodes[n]) != nil {
			return fmt.Errorf("its dictionary does not fit its type")
		}
		if a.NullCount() != 0 {
			b.reason = "its dictionary holds nulls; drop them from the values"
			return nil
		}
		first += a.Offset
		if f.Nodes[n].Kind == Values {
			if rowBytes > 0 && count > maxElements/rowBytes || first+count*rowBytes/int64(f.Nodes[n].Size) > a.Offset+a.Length {
				return fmt.Errorf("its dictionary has not enough values")
			}
			b.addDictionary(a.Buffers[1].At, first*int64(f.Nodes[n].Size), count, rowBytes)
			return nil
		}
		if first > maxElements/int64(max(f.Nodes[n].Size, 1)) {
			return fmt.Errorf("its dictionary does not fit its type")
		}
		first *= int64(f.Nodes[n].Size)
		a = a.Child()
	}
	return nil
}

func (b *builder) addDictionary(values unsafe.Pointer, offset, count, rowBytes int64) {
	d := &Dictionary{Len: count, Values: unsafe.Slice((*byte)(unsafe.Add(values, offset)), count*rowBytes)}
	d.From = int32(len(b.column.Planes[len(b.column.Planes)-1].Data) - 1)
	if last := b.dictionary; last == nil || last.Len != d.Len || unsafe.SliceData(last.Values) != unsafe.SliceData(d.Values) {
		b.column.Dictionaries, b.dictionary = append(b.column.Dictionaries, d), d
	}
}

// first fills the unknown lengths of a shape with those of a row of a record
// batch. It is false for a row with a null or an empty list on the way.
func (b *builder) first(batch int, row int64, shape []int) bool {
	at := row
	for n := range b.field.Nodes {
		node, p := &b.field.Nodes[n], &b.column.Planes[n]
		at += shiftOf(p, batch)
		if p.Valid != nil && p.Valid[batch] >= 0 && view(uintptr(p.Valid[batch]+at>>3), 1)[0]>>(at&7)&1 == 0 {
			return false
		}
		switch node.Kind {
		case Fixed:
			at *= int64(node.Size)
		case List:
			start, stop := offsetsAt(p.Data[batch], at, node.Width)
			if start < 0 || stop <= start || stop > b.column.Planes[n+1].Length[batch] {
				return false
			}
			if shape[n] < 0 {
				shape[n] = int(min(stop-start, maxRowBytes))
			}
			at = start
		}
	}
	return true
}

func shiftOf(p *Plane, batch int) int64 {
	if p.Shift == nil {
		return 0
	}
	return p.Shift[batch]
}

// offsetsAt reads where a list begins and ends.
func offsetsAt(address, list int64, width int) (start, stop int64) {
	b := view(uintptr(address+list*int64(width)), 2*int64(width))
	return Integer(b, width), Integer(b[width:], width)
}
