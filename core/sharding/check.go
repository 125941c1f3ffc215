package sharding

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Check checks that an array of this shape can have the sharding. The spec may
// have at most one entry per dimension, and the number of tiles must divide every
// dimension. (Some functions of JAX accept trailing Nones.) The error is
// InvalidArgument. Like JAX's, it names the first dimension that does not divide.
// Every number divides zero.
func (s *NamedSharding) Check(shape []int) error {
	if len(s.spec) > len(shape) {
		return s.tooLong(shape)
	}
	for d, n := range shape {
		if n < 0 {
			return fail("dimension %d of shape %s is negative", d, shapeText(shape)).With("dimension", d).With("size", n)
		}
		if k := s.Tiles(d); n%k != 0 {
			return s.indivisible(shape, d, k)
		}
	}
	return nil
}

func (s *NamedSharding) tooLong(shape []int) error {
	entries, hint := "entries", "give at most one entry per dimension"
	if len(s.spec) == 1 {
		entries = "entry"
	}
	if len(shape) == 0 {
		hint = "use P() for a scalar"
	}
	return fail("spec %s has %d %s, but shape %s has rank %d", s.spec, len(s.spec), entries, shapeText(shape), len(shape)).
		WithHint("%s", hint).With("rank", len(shape)).With("entries", len(s.spec))
}

func (s *NamedSharding) indivisible(shape []int, d, k int) error {
	n := shape[d]
	by := make([]string, len(s.spec[d]))
	for i, name := range s.spec[d] {
		by[i] = fmt.Sprintf("%q (size %d)", name, s.sizes[s.axes[d][i]])
	}
	what := "axis"
	if len(by) > 1 {
		what = "axes"
	}
	return fail("dimension %d of shape %s is split %d ways by %s %s, but %d %% %d = %d",
		d, shapeText(shape), k, what, strings.Join(by, ", "), n, k, n%k).
		WithHint("the nearest sizes that divide: %s", nearest(n, k)).
		With("dimension", d).With("size", n).With("tiles", k).With("remainder", n%k).With("axes", s.Spec()[d])
}

// nearest names the multiples of k on both sides of n, except zero.
func nearest(n, k int) string {
	below, above := n-n%k, n-n%k+k
	switch {
	case below == 0:
		return strconv.Itoa(above)
	case n > math.MaxInt-k:
		return strconv.Itoa(below)
	}
	return fmt.Sprintf("%d or %d", below, above)
}

func shapeText(shape []int) string { return tuple(shape, strconv.Itoa) }
