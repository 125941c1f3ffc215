package table

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Array is a column of a record batch in memory, or one of its children, as Arrow's
// C data interface describes it. Its first element is element Offset of the buffers.
type Array struct {
	Length, Offset int64
	Nulls          int64    // -1 if the producer has not counted them
	Buffers        []Buffer // the validity bitmap first; of views, the data buffers last

	Child      func(i int) *Array // nil unless there are as many as the type has
	Dictionary func() *Array      // nil without a dictionary
}

// Buffer is a piece of memory. Bytes is -1 if the size is not known.
type Buffer struct {
	At    unsafe.Pointer
	Bytes int64
}

// maxElements bounds the elements of an array, so that sums and products of
// two bounded numbers do not overflow.
const maxElements = 1 << 46

// check returns an error if the length or the offset is impossible, a buffer is
// missing, or a buffer is too small for the elements. Level n of the field describes which
// buffers an array of its type has.
func (a *Array) check(f *arrowtype.Field, n int) error {
	if a == nil || a.Length < 0 || a.Length > maxElements || a.Offset < 0 || a.Offset > maxElements {
		return fmt.Errorf("no possible length or offset")
	}
	data, want := f.Levels[n].Buffer(), 2
	if data.Bits == 0 {
		want = 1
	}
	if f.HasInline(n) {
		want++
	}
	views := n == len(f.Levels)-1 && f.HasViews() // any number of data buffers follows
	if len(a.Buffers) < want || len(a.Buffers) > want && !views {
		return fmt.Errorf("%d buffers instead of %d", len(a.Buffers), want)
	}
	end := a.Offset + a.Length
	if a.Buffers[0].At != nil {
		if err := a.Buffers[0].holds(end); err != nil {
			return err
		}
	}
	switch {
	case data.Bits == 0 || a.Length == 0:
		return nil
	case a.Buffers[1].At == nil:
		return fmt.Errorf("no values")
	}
	return a.Buffers[1].holds((end + data.Extra) * data.Bits)
}

// holds returns an error if the buffer is known to have fewer bits.
func (b Buffer) holds(bits int64) error {
	if need := (bits + 7) / 8; b.Bytes >= 0 && b.Bytes < need {
		return fmt.Errorf("a buffer of %d bytes, but %d are needed", b.Bytes, need)
	}
	return nil
}

// NullCount returns the number of nulls. It counts them if the producer has not.
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
