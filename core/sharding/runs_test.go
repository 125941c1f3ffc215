package sharding_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/sharding"
	rounds "github.com/meshfeed/meshfeed/tests/random"
)

// TestRuns compares the elements of the pieces with a test of every element, and
// checks that no two pieces could be one.
func TestRuns(t *testing.T) {
	rounds.Rounds(t, 2000, 50_000, func(t *testing.T, r *rand.Rand) {
		var shape []int
		var part sharding.Index
		for range r.IntN(5) {
			n := r.IntN(5)
			start := r.IntN(n + 1)
			shape = append(shape, n)
			part = append(part, [2]int{start, start + r.IntN(n-start+1)})
		}
		var got []int
		last := -1
		for start, n := range part.Runs(shape) {
			if n == 0 || start == last {
				t.Fatalf("%v of %v: a piece of %d elements at %d follows one that ends at %d", part, shape, n, start, last)
			}
			for i := range n {
				got = append(got, start+i)
			}
			last = start + n
		}
		if want := elementsOf(part, shape); !slices.Equal(got, want) {
			t.Fatalf("%v of %v: got %v, want %v", part, shape, got, want)
		}
	})
}

// elementsOf lists the elements of a part, in C order.
func elementsOf(part sharding.Index, shape []int) []int {
	list := []int{0}
	for d, n := range shape {
		var next []int
		for _, e := range list {
			for i := part[d][0]; i < part[d][1]; i++ {
				next = append(next, e*n+i)
			}
		}
		list = next
	}
	return list
}

func TestRunsCanStop(t *testing.T) {
	for start, n := range (sharding.Index{{0, 2}, {1, 3}}).Runs([]int{2, 4}) {
		if start != 1 || n != 2 {
			t.Errorf("the first piece is %d elements at %d", n, start)
		}
		break
	}
}
