package levels

import (
	"math/bits"
	"slices"
)

// Rows returns the number of rows so far.
func (b *Builder) Rows() int64 { return b.rows }

// Cut keeps the rows from start to stop-1. It returns which slots of values are left:
// slots first to last-1 of the old ones.
func (s *Shape) Cut(start, stop int64) (first, last int64) {
	for i := range s.Lists {
		l := &s.Lists[i]
		l.Valid = l.Valid.cut(start, stop)
		first, last = l.Offsets[start], l.Offsets[stop]
		l.Offsets = CutOffsets(l.Offsets, start, stop)
		start, stop = first, last
	}
	s.Valid, s.Outer = s.Valid.cut(start, stop), s.Outer.cut(start, stop)
	s.Values, s.Present = stop-start, stop-start
	if s.Valid != nil {
		s.Present = s.Valid.count(0, s.Values)
	}
	return start, stop
}

// CutOffsets returns the offsets of the lists from start to stop-1, beginning with 0. The
// result is in the same memory, unless most of it is not needed any more.
func CutOffsets(offsets []int64, start, stop int64) []int64 {
	out := Kept(offsets, start, stop+1)
	for i, base := 0, out[0]; i < len(out); i++ {
		out[i] -= base
	}
	return out
}

// Kept returns elements of a slice: a copy if the slice has more than twice as many, so that
// its memory becomes free.
func Kept[T any](all []T, start, stop int64) []T {
	part := all[start:stop:stop]
	if 2*len(part) < cap(all) {
		return slices.Clone(part)
	}
	return part
}

// cut returns the bits of the slots from start to stop-1.
func (b Bitmap) cut(start, stop int64) Bitmap {
	if b == nil || b.count(start, stop) == stop-start {
		return nil
	}
	n := stop - start
	out, shift := make(Bitmap, (n+7)/8), start&7
	for i := range out {
		at := start>>3 + int64(i)
		out[i] = b[at] >> shift
		if shift > 0 && at+1 < int64(len(b)) {
			out[i] |= b[at+1] << (8 - shift)
		}
	}
	if n&7 > 0 {
		out[len(out)-1] &= 1<<(n&7) - 1
	}
	return out
}

// count returns how many of the slots from start to stop-1 hold a value.
func (b Bitmap) count(start, stop int64) (n int64) {
	for ; start < stop && start&7 > 0; start++ {
		n += int64(b[start>>3] >> (start & 7) & 1)
	}
	for ; start+8 <= stop; start += 8 {
		n += int64(bits.OnesCount8(b[start>>3]))
	}
	for ; start < stop; start++ {
		n += int64(b[start>>3] >> (start & 7) & 1)
	}
	return n
}
