// Package sharding computes which part of an array each device of a mesh
// holds, exactly as jax.sharding.NamedSharding does.
//
// If the spec entry of dimension d names axes (a1, a2, …), the number of tiles is the
// product of their sizes. The tile of a device is the mixed-radix number of its coordinates
// on these axes, with the first axis most significant. Axes that are not named replicate.
// The number of tiles must divide the dimension: JAX has no uneven sharding of inputs, so
// this package has none.
//
// [Fit] checks a spec and lists everything that is wrong with it. A [Tiling]
// numbers the distinct parts and is fast for large meshes. [NamedSharding.Map]
// returns the indexes of all devices. tests/conformance compares this package with
// tables that JAX made.
package sharding

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// NamedSharding is a mesh and a partition spec over its axes. It is immutable
// and safe for concurrent use.
type NamedSharding struct {
	mesh  *mesh.Mesh
	spec  PartitionSpec
	sizes []int   // sizes of the mesh's axes
	axes  [][]int // spec as axis numbers
	tiles []int   // tiles of the spec's entries
}

// New makes a sharding. Every axis of spec must be in the mesh and occur once, else
// the error is InvalidArgument. Like JAX's, it names an axis that occurs twice
// before one that the mesh does not have.
func New(m *mesh.Mesh, spec PartitionSpec) (*NamedSharding, error) {
	if m == nil {
		return nil, fail("spec %s has no mesh", spec).WithHint("give the mesh that its axes belong to")
	}
	if faults := axisFaults(m, spec, " of "+wording.Plain(spec.String())); len(faults) > 0 {
		repeated := slices.IndexFunc(faults, func(f Fault) bool { return f.Code == DuplicateAxis })
		return nil, faults[max(repeated, 0)].err()
	}
	return build(m, spec), nil
}

// build makes the sharding of a spec without faults.
func build(m *mesh.Mesh, spec PartitionSpec) *NamedSharding {
	s := &NamedSharding{mesh: m, spec: spec.Clone(), axes: make([][]int, len(spec)), tiles: make([]int, len(spec))}
	for _, axis := range m.Axes() {
		s.sizes = append(s.sizes, axis.Size)
	}
	for d, entry := range spec {
		s.tiles[d] = 1
		for _, name := range entry {
			n, axis, _ := m.Axis(name)
			s.axes[d] = append(s.axes[d], n)
			s.tiles[d] *= axis.Size
		}
	}
	return s
}

// Mesh returns the mesh.
func (s *NamedSharding) Mesh() *mesh.Mesh { return s.mesh }

// Spec returns a copy of the spec.
func (s *NamedSharding) Spec() PartitionSpec { return s.spec.Clone() }

// String prints the sharding as JAX does, without axis types and memory kind.
func (s *NamedSharding) String() string {
	return fmt.Sprintf("NamedSharding(mesh=%s, spec=%s)", s.mesh, s.spec)
}

// Tiles returns the number of tiles of a dimension, which may be past the spec.
func (s *NamedSharding) Tiles(dim int) int {
	if dim >= len(s.tiles) {
		return 1
	}
	return s.tiles[dim]
}

// IsFullyReplicated reports whether every device holds the whole array.
func (s *NamedSharding) IsFullyReplicated() bool {
	return !slices.ContainsFunc(s.tiles, func(k int) bool { return k > 1 })
}
