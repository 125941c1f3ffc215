package permutation_test

import (
	"math/bits"
	"testing"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// Every size up to 200, and every size around the end of the table and around
// squares, is a bijection for several keys. Package samplertest has the tests of
// the other promises.
func TestBijection(t *testing.T) {
	check := func(n int64) {
		for key := range uint64(3) {
			seen := make([]bool, n)
			p := permutation.New(n, key)
			for i := range n {
				x := p.At(i)
				if x < 0 || x >= n || seen[x] {
					t.Fatalf("size %d, key %d: position %d has image %d, which is out of range or an image already", n, key, i, x)
				}
				seen[x] = true
				if back := p.Position(x); back != i {
					t.Fatalf("size %d, key %d: position %d has image %d, which has position %d", n, key, i, x, back)
				}
			}
		}
	}
	for n := range int64(200) {
		check(n)
	}
	for _, middle := range []int64{permutation.TableSize, 65 * 65, 66 * 66, 100 * 100, 1 << 14} {
		for n := middle - 3; n <= middle+3; n++ {
			check(n)
		}
	}
}

func TestSizeOutOfRange(t *testing.T) {
	for _, n := range []int64{-1, permutation.MaxSize + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("size %d was accepted", n)
				}
			}()
			permutation.New(n)
		}()
	}
}

// Order and number of the words matter, and so does every bit of every word.
func TestHash(t *testing.T) {
	if permutation.Hash(1, 2) == permutation.Hash(2, 1) || permutation.Hash(0) == permutation.Hash(0, 0) {
		t.Error("the order or the number of the words does not matter")
	}
	const samples = 2000
	for word := range 3 {
		for bit := range 64 {
			flipped := 0
			for i := range uint64(samples) {
				words := [3]uint64{i, i * i, 7}
				before := permutation.Hash(words[:]...)
				words[word] ^= 1 << bit
				flipped += bits.OnesCount64(before ^ permutation.Hash(words[:]...))
			}
			if mean := float64(flipped) / samples; mean < 31 || mean > 33 {
				t.Errorf("flipping bit %d of word %d flips %.1f bits on average", bit, word, mean)
			}
		}
	}
}

// Fill agrees with At, also where a row of the rectangle ends, and for elements
// that walk.
func TestFill(t *testing.T) {
	for _, n := range []int64{0, 5, permutation.TableSize, permutation.TableSize + 1, 5000, 1 << 33} {
		p := permutation.New(n, 3)
		if p.Len() != n {
			t.Fatalf("Len() = %d, want %d", p.Len(), n)
		}
		for _, start := range []int64{0, n / 3, max(0, n-2000)} {
			dst := make([]int64, min(2000, n-start))
			p.Fill(dst, start)
			for i, x := range dst {
				if want := p.At(start + int64(i)); x != want {
					t.Fatalf("size %d: Fill returns %d at position %d, At %d", n, x, start+int64(i), want)
				}
			}
		}
	}
}

func TestPositionOutOfRange(t *testing.T) {
	defer func() {
		if got := recover(); got != "permutation: positions [9, 11) are not in [0, 10)" {
			t.Errorf("got %v", got)
		}
	}()
	permutation.New(10).Fill(make([]int64, 2), 9)
}
