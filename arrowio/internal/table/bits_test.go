package table

import (
	"math/rand/v2"
	"testing"
)

// TestAllSet compares allSet with a loop over single bits.
func TestAllSet(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		b := []byte{255, 255, 255, 255, 255}
		if random.IntN(2) == 0 {
			bit := random.IntN(40)
			b[bit>>3] &^= 1 << (bit & 7)
		}
		first := random.Int64N(40)
		n := random.Int64N(41 - first)
		want := true
		for i := first; i < first+n; i++ {
			want = want && b[i>>3]>>(i&7)&1 == 1
		}
		if got := allSet(b, first, n); got != want {
			t.Fatalf("%08b: allSet of bits %d to %d is %v, want %v", b, first, first+n, got, want)
		}
	}
}
