package permutation

import (
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// Fill agrees with At for lists of all lengths at any position, also for elements
// that pass through the network again, and at the largest size with addends.
func TestFill(t *testing.T) {
	r := random.New(t)
	for _, n := range []int64{TableSize, TableSize + 1, 5000, 1_000_000, maxTabulated, maxTabulated + 1, MaxSize} {
		p := New(n, r.Uint64())
		for count := range 3 * lanes {
			for _, position := range []int64{0, r.Int64N(n - int64(count)), n - int64(count)} {
				dst := make([]int64, count)
				p.Fill(dst, position)
				for i, got := range dst {
					if want := p.At(position + int64(i)); got != want {
						t.Fatalf("size %d: Fill sets position %d of %d from %d on to %d, but At returns %d", n, i, count, position, got, want)
					}
				}
			}
		}
	}
}

// An addend of a tabulated network has 16 bits. A half has at most 20 bits.
func TestHalves(t *testing.T) {
	for bits := range 41 {
		for d := int64(-1); d <= 1; d++ {
			n := min(max(1, int64(1)<<bits+d), MaxSize)
			f := newFeistel(n, [2]uint64{})
			if f.a > 1<<20+1 || f.b > 1<<20 || f.a*f.b < f.n {
				t.Errorf("size %d: the rectangle is %d × %d", n, f.a, f.b)
			}
			if n <= maxTabulated && max(f.a, f.b) > 1<<16 {
				t.Errorf("size %d: an addend may have more than 16 bits", n)
			}
		}
	}
}
