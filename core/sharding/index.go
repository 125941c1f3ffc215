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

// IndexAt returns the part that the device at a mesh position holds. The shape
// must pass Check.
func (s *NamedSharding) IndexAt(shape []int, position int) Index {
	t := s.tiling(shape)
	return t.Index(t.At(position))
}

// Map returns the index and the replica number of every device, in mesh order. The
// replica number is the number of earlier devices with an equal index. Equal
// indexes are one slice, which the caller must not change.
func (s *NamedSharding) Map(shape []int) (indexes []Index, replicas []int, err error) {
	t, err := s.Tiling(shape)
	if err != nil {
		return nil, nil, err
	}
	distinct, seen := make([]Index, t.count), make([]int, t.count)
	for tile := range distinct {
		distinct[tile] = t.Index(tile)
	}
	indexes, replicas = make([]Index, s.mesh.Size()), make([]int, s.mesh.Size())
	for i, tile := range t.All() {
		indexes[i], replicas[i] = distinct[tile], seen[tile]
		seen[tile]++
	}
	return indexes, replicas, nil
}
