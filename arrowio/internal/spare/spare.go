// Package spare reuses the memory of buffers, because the first access to new memory takes
// about as long as decoding into it. A garbage collection may free the memory that it keeps.
package spare

import (
	"math/bits"
	"sync"
)

// least and most bound the bytes of a buffer that is kept. To allocate less costs little.
const (
	least = 64 << 10
	most  = 64 << 20
)

var pools [64]sync.Pool // holds *[]byte, by the number of bits of their capacity

// Take returns n bytes with any content. Their capacity is at most an eighth larger.
func Take(n int64) []byte {
	if least <= n && n <= most {
		if b, ok := pools[bits.Len64(uint64(n))].Get().(*[]byte); ok && fits(int64(cap(*b)), n) {
			return (*b)[:n]
		}
	}
	return make([]byte, n)
}

func fits(size, n int64) bool { return n <= size && size <= n+n/8 }

// Give keeps the memory of a buffer. The caller must not use it any more.
func Give(b []byte) {
	if n := cap(b); least <= n && n <= most {
		pools[bits.Len64(uint64(n))].Put(&b)
	}
}
