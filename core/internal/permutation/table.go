package permutation

import (
	"math/bits"
	"slices"
)

// table is a permutation as a list.
type table []uint16

// newTable shuffles 0…n-1 (Fisher-Yates): for every position from the last to the
// second, it draws one of the remaining elements. The index drawn is the high half
// of the product of their number and a 64-bit hash. Its bias is below n/2^64.
func newTable(n int64, key [2]uint64) table {
	t := make(table, n)
	for i := range t {
		t[i] = uint16(i)
	}
	for i := len(t) - 1; i > 0; i-- {
		j, _ := bits.Mul64(Hash(uint64(i), key[0], key[1]), uint64(i)+1)
		t[i], t[j] = t[j], t[i]
	}
	return t
}

func (t table) Len() int64 { return int64(len(t)) }

func (t table) At(position int64) int64 {
	check(position, 1, t.Len())
	return int64(t[position])
}

func (t table) Position(image int64) int64 {
	check(image, 1, t.Len())
	return int64(slices.Index(t, uint16(image)))
}

func (t table) Fill(dst []int64, position int64) {
	check(position, int64(len(dst)), t.Len())
	for i, v := range t[position : position+int64(len(dst))] {
		dst[i] = int64(v)
	}
}
