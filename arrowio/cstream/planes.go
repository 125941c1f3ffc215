package cstream

/*
#include "cstream.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
)

// builder finds the buffers of one column in one record batch after the other.
type builder struct {
	field  *table.Field
	column *table.Column
	reason string // why the column cannot be an array after all

	nulls      []bool // per node: some batch has nulls there
	dictionary *table.Dictionary
}

// maxElements bounds the elements of an array, so that sums and products of
// two bounded numbers do not overflow.
const maxElements = 1 << 46

// batch adds the buffers of one record batch.
func (b *builder) batch(top *C.struct_ArrowArray, number int) error {
	if b.nulls == nil {
		b.nulls = make([]bool, len(b.field.Nodes))
	}
	a := unsafe.Slice(top.children, int(top.n_children))[number]
	shift, need := int64(top.offset), int64(top.length) // elements that the parent uses
	for n := range b.field.Nodes {
		if a == nil || a.length < 0 || a.length > maxElements || a.offset < 0 || a.offset > maxElements {
			return fmt.Errorf("level %d has no length or offset that can be", n)
		}
		if need > int64(a.length)-shift {
			return fmt.Errorf("level %d has %d values, but %d are needed", n, a.length, shift+need)
		}
		if err := b.node(n, a, shift+int64(a.offset)); err != nil {
			return err
		}
		node := &b.field.Nodes[n]
		switch node.Kind {
		case table.Values:
			return nil
		case table.Coded:
			return b.coded(a)
		case table.Fixed:
			size := int64(node.Size)
			if hi, _ := bits.Mul64(uint64(shift+int64(a.offset)+need), uint64(size)); hi != 0 || (shift+int64(a.offset)+need)*size > maxElements {
				return fmt.Errorf("level %d has lists of %d values, which is more than memory can hold", n, size)
			}
			if need > 0 {
				need = (shift + int64(a.offset) + need) * size
			}
			shift = 0
		default:
			shift, need = 0, 0 // the offsets are checked when rows are gathered
		}
		if a.n_children != 1 {
			return fmt.Errorf("level %d has %d children instead of 1", n, a.n_children)
		}
		a = *a.children
	}
	return nil
}

// node adds the buffers of one level.
func (b *builder) node(n int, a *C.struct_ArrowArray, shift int64) error {
	kind, p := b.field.Nodes[n].Kind, &b.column.Planes[n]
	want := 2
	if kind == table.Fixed {
		want = 1
	}
	if int(a.n_buffers) != want {
		return fmt.Errorf("level %d has %d buffers instead of %d", n, a.n_buffers, want)
	}
	buffers := unsafe.Slice(a.buffers, want)
	valid := int64(-1)
	if buffers[0] != nil && nullCount(a) != 0 {
		valid = int64(uintptr(buffers[0]))
		b.nulls[n] = true
	}
	p.Valid = append(p.Valid, valid)
	if kind != table.Fixed {
		if buffers[1] == nil && a.length > 0 {
			return fmt.Errorf("level %d has no values", n)
		}
		p.Data = append(p.Data, int64(uintptr(buffers[1])))
	}
	p.Length = append(p.Length, int64(a.length))
	p.Shift = append(p.Shift, shift)
	return nil
}

// nullCount gives the number of nulls, counted where the producer has not.
func nullCount(a *C.struct_ArrowArray) int64 {
	if a.null_count >= 0 {
		return int64(a.null_count)
	}
	first, n := int64(a.offset), int64(a.length)
	bitmap := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(a.buffers))), (first+n+7)/8)
	nulls := int64(0)
	for i := first; i < first+n; {
		if i%8 == 0 && first+n-i >= 64 {
			nulls += int64(bits.OnesCount64(^binary.NativeEndian.Uint64(bitmap[i/8:])))
			i += 64
			continue
		}
		nulls += int64(^bitmap[i/8] >> (i % 8) & 1)
		i++
	}
	return nulls
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
		lists = lists || b.field.Nodes[n].Kind == table.List
	}
	if !nulls && !lists && b.field.Nodes[last].Kind == table.Values {
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
func (b *builder) coded(indices *C.struct_ArrowArray) error {
	f, a := b.field.Values, indices.dictionary
	if a == nil {
		return fmt.Errorf("it has no dictionary")
	}
	count, rowBytes := int64(a.length), int64(f.Type.Size())
	for _, d := range f.Shape {
		rowBytes *= int64(d)
	}
	first := int64(0) // of the values, in elements of the level
	for n := range f.Nodes {
		want := 2
		if f.Nodes[n].Kind == table.Fixed {
			want = 1
		}
		if a == nil || int(a.n_buffers) != want || a.length < 0 || a.length > maxElements || a.offset < 0 || a.offset > maxElements {
			return fmt.Errorf("its dictionary does not fit its type")
		}
		buffers := unsafe.Slice(a.buffers, want)
		if buffers[0] != nil && nullCount(a) != 0 {
			b.reason = "its dictionary holds nulls; drop them from the values"
			return nil
		}
		first += int64(a.offset)
		if f.Nodes[n].Kind == table.Values {
			return b.addDictionary(buffers[1], first*int64(f.Nodes[n].Size), count, rowBytes)
		}
		if first > maxElements/int64(max(f.Nodes[n].Size, 1)) || a.n_children != 1 {
			return fmt.Errorf("its dictionary does not fit its type")
		}
		first *= int64(f.Nodes[n].Size)
		a = *a.children
	}
	return nil
}

func (b *builder) addDictionary(values unsafe.Pointer, offset, count, rowBytes int64) error {
	if values == nil && count > 0 || rowBytes > 0 && count > maxElements/rowBytes {
		return fmt.Errorf("its dictionary has no values")
	}
	d := &table.Dictionary{Len: count, Values: unsafe.Slice((*byte)(unsafe.Add(values, offset)), count*rowBytes)}
	d.From = int32(len(b.column.Planes[len(b.column.Planes)-1].Data) - 1)
	if last := b.dictionary; last == nil || last.Len != d.Len || unsafe.SliceData(last.Values) != unsafe.SliceData(d.Values) {
		b.column.Dictionaries, b.dictionary = append(b.column.Dictionaries, d), d
	}
	return nil
}

// first fills the unknown lengths of a shape with those of the first row of a
// record batch, as far as it has lists.
func (b *builder) first(batch int, shape []int) {
	at := int64(0)
	for n := range b.field.Nodes {
		node, p := &b.field.Nodes[n], &b.column.Planes[n]
		if p.Shift != nil {
			at += p.Shift[batch]
		}
		switch node.Kind {
		case table.Fixed:
			at *= int64(node.Size)
		case table.List:
			if at >= p.Length[batch]+shiftOf(p, batch) {
				return // an empty list above
			}
			start, stop := offsetsAt(p.Data[batch], at, node.Width)
			if shape[n] < 0 && stop >= start && stop-start <= 1<<31 {
				shape[n] = int(stop - start)
			}
			at = start
		default:
			return
		}
	}
}

func shiftOf(p *table.Plane, batch int) int64 {
	if p.Shift == nil {
		return 0
	}
	return p.Shift[batch]
}

// offsetsAt reads where a list begins and ends.
func offsetsAt(address, list int64, width int) (start, stop int64) {
	b := memory(uintptr(address+list*int64(width)), 2*width)
	if width == 4 {
		return int64(int32(binary.NativeEndian.Uint32(b))), int64(int32(binary.NativeEndian.Uint32(b[4:])))
	}
	return int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))
}
