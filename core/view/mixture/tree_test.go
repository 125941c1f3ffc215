package mixture

import (
	"math"
	"math/rand/v2"
	"testing"
)

// bound is the most that a source may deviate from its share, in draws.
const bound = 1.68

// walk compares the tree with counting, for some draws from start on.
func walk(t *testing.T, weights []uint64, start, draws uint64) {
	t.Helper()
	tree, total := newTree(weights), uint64(0)
	counts := make([]uint64, len(weights))
	for source, w := range weights {
		total += w
		counts[source] = tree.count(source, start)
	}
	for n := start; n < start+draws; n++ {
		source, number := tree.at(n)
		if number != counts[source] {
			t.Fatalf("weights %v: draw %d takes row %d of source %d after %d of its rows", weights, n, number, source, counts[source])
		}
		if back, ok := tree.position(source, number); back != n || !ok {
			t.Fatalf("weights %v: row %d of source %d is at draw %d, not %d", weights, number, source, n, back)
		}
		counts[source]++
		if tree.count(source, n+1) != counts[source] {
			t.Fatalf("weights %v: source %d has not %d of %d draws", weights, source, counts[source], n+1)
		}
		for source, w := range weights {
			whole, rest := (n+1)/total*w, (n+1)%total
			if d := float64(int64(counts[source]-whole)) - float64(rest)*float64(w)/float64(total); math.Abs(d) > bound {
				t.Fatalf("weights %v: source %d deviates by %.3f after %d draws", weights, source, d, n+1)
			}
		}
	}
}

// TestTreeOfSmallWeights checks all lists of up to five weights with small sums, over two periods.
func TestTreeOfSmallWeights(t *testing.T) {
	lists := 0
	var extend func(weights []uint64, left uint64)
	extend = func(weights []uint64, left uint64) {
		if len(weights) > 0 {
			total := uint64(0)
			for _, w := range weights {
				total += w
			}
			if total > 0 {
				walk(t, weights, 0, 2*total)
				lists++
			}
		}
		if len(weights) < 5 {
			for w := uint64(0); w <= left; w++ {
				extend(append(weights[:len(weights):len(weights)], w), left-w)
			}
		}
	}
	extend(nil, 11)
	if lists < 5000 {
		t.Fatalf("only %d lists", lists)
	}
}

// TestTreeOfLargeWeights checks random lists of weights at random places.
func TestTreeOfLargeWeights(t *testing.T) {
	r := seeded(t)
	for range 60 {
		weights := integers(random(r, 1+r.IntN(64)))
		walk(t, weights, r.Uint64N(1<<50), 500)
		walk(t, weights, 0, 500)
	}
}

// random returns weights of one of several distributions. Some are tiny.
func random(r *rand.Rand, sources int) []float64 {
	weights, kind := make([]float64, sources), r.IntN(4)
	for i := range weights {
		switch kind {
		case 0:
			weights[i] = r.Float64() + 1e-3
		case 1:
			weights[i] = math.Exp(4 * r.NormFloat64())
		case 2:
			weights[i] = math.Pow(0.62, float64(i)) // the deepest tree
		case 3:
			weights[i] = 1
		}
		if r.IntN(8) == 0 && i > 0 {
			weights[i] = 1e-6
		}
	}
	return weights
}
