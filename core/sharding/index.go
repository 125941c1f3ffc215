package sharding

import (
	"fmt"
	"slices"
	"strings"
)

// Index is the part of an array that a device holds: a full [start, stop) pair for
// every dimension. JAX writes slice(None) for a dimension that is not partitioned.
type Index [][2]int

// Equal reports whether both are the same part.
func (x Index) Equal(o Index) bool { return slices.Equal(x, o) }

// Shape returns the shape of the part.
func (x Index) Shape() []int {
	s := make([]int, len(x))
	for d, r := range x {
		s[d] = r[1] - r[0]
	}
	return s
}

// String prints the part as slices, such as [0:8, 16:32].
func (x Index) String() string {
	parts := make([]string, len(x))
	for d, r := range x {
		parts[d] = fmt.Sprintf("%d:%d", r[0], r[1])
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
