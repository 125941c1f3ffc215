package sharding

import "iter"

// Runs yields the contiguous pieces of the part x in an array of this shape, stored
// in C order. It yields the number of a piece's first element in the array, and the
// number of its elements. The pieces come in the C order of the part.
func (x Index) Runs(shape []int) iter.Seq2[int, int] {
	size := 1
	for _, n := range shape {
		size *= n
	}
	return func(yield func(start, n int) bool) {
		if size > 0 {
			x.runs(shape, 0, size, yield)
		}
	}
}

// runs yields the pieces within one subarray. The subarray has this shape and size,
// and begins at element start of the array.
func (x Index) runs(shape []int, start, size int, yield func(start, n int) bool) bool {
	if len(shape) == 0 {
		return yield(start, 1)
	}
	inner := size / shape[0]
	if first := x[0]; x[1:].isWhole(shape[1:]) {
		return first[0] == first[1] || yield(start+first[0]*inner, (first[1]-first[0])*inner)
	}
	for i := x[0][0]; i < x[0][1]; i++ {
		if !x[1:].runs(shape[1:], start+i*inner, inner, yield) {
			return false
		}
	}
	return true
}

// isWhole reports whether the part is all of an array of this shape.
func (x Index) isWhole(shape []int) bool {
	for d, n := range shape {
		if x[d] != [2]int{0, n} {
			return false
		}
	}
	return true
}
