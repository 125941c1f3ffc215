package permutation_test

import (
	"math/bits"
	"testing"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// Every size up to a few hundred, and every size round the end of the table
// and round squares, is a bijection under several keys. (Package samplertest
// holds the other promises.)
func TestBijection(t *testing.T) {
	check := func(n int64) {
		for key := range uint64(3) {
			seen := make([]bool, n)
			p := permutation.New(n, key)
			for i := range n {
				x := p.At(i)
				if x < 0 || x >= n || seen[x] {
					t.Fatalf("size %d, key %d: position %d has image %d, out of range or for the second time", n, key, i, x)
				}
				seen[x] = true
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

// The last word is hashed by a bijection, every bit of every word matters, and
// so does the order of the words.
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

// Fill takes positions through the network together and must agree with At,
// also where it wraps a row of the rectangle or walks.
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
					t.Fatalf("size %d: Fill gives %d at position %d, At gives %d", n, x, start+int64(i), want)
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
