package virtual

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// TestCopyElements copies into memory that is not zero, and checks every bit: the
// copied ones and their neighbors.
func TestCopyElements(t *testing.T) {
	r := random.New(t)
	bit := func(data []byte, i int) byte { return data[i/8] >> (i % 8) & 1 }
	for range 2000 {
		bits := 1 << r.IntN(6)
		to, from, n := r.IntN(20), r.IntN(20), r.IntN(20)
		dst, src := make([]byte, 160), make([]byte, 160)
		for i := range dst {
			dst[i], src[i] = byte(r.Uint32()), byte(r.Uint32())
		}
		before := slices.Clone(dst)
		copyElements(dst, to, src, from, n, bits)
		for i := range 8 * len(dst) {
			want := bit(before, i)
			if at := i - bits*to; at >= 0 && at < bits*n {
				want = bit(src, bits*from+at)
			}
			if bit(dst, i) != want {
				t.Fatalf("%d elements of %d bits from %d to %d: bit %d is %d", n, bits, from, to, i, bit(dst, i))
			}
		}
	}
}
