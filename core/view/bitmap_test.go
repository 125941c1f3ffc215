package view

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// TestNth compares nth with a loop, for words of every density.
func TestNth(t *testing.T) {
	random.Rounds(t, 300, 30000, func(t *testing.T, r *rand.Rand) {
		word := r.Uint64()
		for range r.IntN(6) {
			word = random.One(r, word&r.Uint64(), word|r.Uint64())
		}
		word = random.One(r, word, 0, ^uint64(0), 1<<63, 1, word<<r.IntN(64))
		rest := word
		for n := range bits.OnesCount64(word) {
			want := bits.TrailingZeros64(rest)
			if got := nth(word, n); got != want {
				t.Fatalf("bit %d of %064b is at %d, not at %d", n, word, want, got)
			}
			rest &= rest - 1
		}
	})
}

// TestBitmap compares find and count with a list of the set bits.
func TestBitmap(t *testing.T) {
	random.Rounds(t, 40, 4000, func(t *testing.T, r *rand.Rand) {
		n := random.One(r, int64(1), 63, 64, 65, 1024, 1025, r.Int64N(100_000)+1)
		one := random.One(r, 2, 3, 100, 5000, 50000) // one bit in so many is different
		most := r.IntN(2) == 0
		var set []int64
		b := newBitmap(n, func(at int64) bool {
			keep := (r.IntN(one) == 0) != most
			if keep {
				set = append(set, at)
			}
			return keep
		})
		if b.ones != int64(len(set)) {
			t.Fatalf("%d bits are set, want %d", b.ones, len(set))
		}
		for k, at := range set {
			if got := b.find(int64(k)); got != at {
				t.Fatalf("bit %d is at %d, not at %d", k, at, got)
			}
			if got := b.count(at); got != int64(k) {
				t.Fatalf("%d bits are before %d, not %d", k, at, got)
			}
		}
	})
}
