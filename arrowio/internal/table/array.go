package table

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"
)

// Array is a level of a column in one record batch in memory, as Arrow's C data
// interface describes it: its buffers are skipped by Offset elements.
type Array struct {
	Length, Offset int64
	Nulls          int64    // -1 where nobody has counted
	Buffers        []Buffer // validity first

	Child      func() *Array // nil unless there is exactly one
	Dictionary func() *Array // nil if there is none
}

// Buffer is a piece of memory. Bytes is -1 where the size is not known.
type Buffer struct {
	At    unsafe.Pointer
	Bytes int64
}

// check makes sure that the buffers are those of the node and hold all
// elements.
func (a *Array) check(node *Node) error {
	want, bits := 2, int64(8*node.Width)
	if node.Kind == Fixed {
		want = 1
	}
	if len(a.Buffers) != want {
		return fmt.Errorf("%d buffers instead of %d", len(a.Buffers), want)
	}
	end := a.Offset + a.Length
	if err := a.Buffers[0].holds(end); a.Buffers[0].At != nil && err != nil {
		return err
	}
	switch {
	case node.Kind == Fixed || a.Length == 0:
		return nil
	case a.Buffers[1].At == nil:
		return fmt.Errorf("no values")
	case node.Kind == List:
		end++
	case node.Kind == Values:
		bits = int64(max(1, 8*node.Size))
	}
	return a.Buffers[1].holds(end * bits)
}

func (b Buffer) holds(bits int64) error {
	if need := (bits + 7) / 8; b.Bytes >= 0 && b.Bytes < need {
		return fmt.Errorf("a buffer of %d bytes, but %d are needed", b.Bytes, need)
	}
	return nil
}

// NullCount gives the number of nulls, counted where the producer has not.
func (a *Array) NullCount() int64 {
	if len(a.Buffers) == 0 || a.Buffers[0].At == nil {
		return 0
	}
	if a.Nulls >= 0 {
		return a.Nulls
	}
	first, end := a.Offset, a.Offset+a.Length
	bitmap := unsafe.Slice((*byte)(a.Buffers[0].At), (end+7)/8)
	nulls := int64(0)
	for i := first; i < end; {
		if i%8 == 0 && end-i >= 64 {
			nulls += int64(bits.OnesCount64(^binary.NativeEndian.Uint64(bitmap[i/8:])))
			i += 64
			continue
		}
		nulls += int64(^bitmap[i/8] >> (i % 8) & 1)
		i++
	}
	return nulls
}
