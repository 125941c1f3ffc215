// Package sharding computes which part of an array each device of a mesh
// holds, exactly as jax.sharding.NamedSharding does.
//
// For dimension d whose spec entry names axes (a1, a2, …), the number of tiles
// is the product of their sizes, and a device's tile is the mixed-radix number
// of its coordinates on those axes, the first axis most significant. Axes that
// are not named replicate. A dimension must divide by its number of tiles: JAX
// has no uneven sharding of inputs, so there is none here.
//
// [NamedSharding.Map] answers for every device, [NamedSharding.Local] for one
// process, without being that process. Both rest on [Tiling], which numbers the
// distinct parts and is what to use for large meshes. The tables of
// tests/conformance, made by JAX itself, hold this package to JAX.
package sharding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
)

// NamedSharding is a mesh and a partition spec over its axes. It is immutable
// and safe for concurrent use.
type NamedSharding struct {
	mesh  *mesh.Mesh
	spec  PartitionSpec
	sizes []int   // of the mesh's axes
	axes  [][]int // spec as axis numbers
	tiles []int   // of the spec's entries
}

// New checks that every axis of spec is in the mesh and used once, else the
// error is InvalidArgument.
func New(m *mesh.Mesh, spec PartitionSpec) (*NamedSharding, error) {
	if m == nil {
		return nil, fail("spec %s has no mesh", spec).WithHint("give the mesh that its axes belong to")
	}
	if err := checkUnique(spec); err != nil {
		return nil, err
	}
	s := &NamedSharding{mesh: m, spec: spec.Clone(), axes: make([][]int, len(spec)), tiles: make([]int, len(spec))}
	for _, axis := range m.Axes() {
		s.sizes = append(s.sizes, axis.Size)
	}
	for d, entry := range spec {
		s.tiles[d] = 1
		for _, name := range entry {
			n, axis, ok := m.Axis(name)
			if !ok {
				return nil, fail("axis %q of %s is not in %s", name, spec, m).
					WithHint("use %s", axisNames(m)).With("axis", name).With("dimension", d)
			}
			s.axes[d] = append(s.axes[d], n)
			s.tiles[d] *= axis.Size
		}
	}
	return s, nil
}

// checkUnique refuses an axis that stands in a spec twice.
func checkUnique(spec PartitionSpec) error {
	used := map[string]int{}
	for d, entry := range spec {
		for _, name := range entry {
			e, dup := used[name]
			used[name] = d
			switch {
			case dup && e == d:
				return fail("axis %q stands twice in entry %d of %s", name, d, spec).
					WithHint("an axis can partition one dimension once").With("axis", name).With("dimension", d)
			case dup:
				return fail("axis %q of %s partitions dimension %d and dimension %d", name, spec, e, d).
					WithHint("an axis can partition one dimension once").With("axis", name).With("dimension", d)
			}
		}
	}
	return nil
}

// axisNames lists what an entry of a spec may name.
func axisNames(m *mesh.Mesh) string {
	axes := m.Axes()
	if len(axes) == 0 {
		return "P(): the mesh has no axes"
	}
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = fmt.Sprintf("%q", a.Name)
	}
	if len(names) == 1 {
		return names[0]
	}
	return "one of " + strings.Join(names, ", ")
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "sharding", format, args...)
}

// Mesh gives the mesh.
func (s *NamedSharding) Mesh() *mesh.Mesh { return s.mesh }

// Spec gives a copy of the spec.
func (s *NamedSharding) Spec() PartitionSpec { return s.spec.Clone() }

// Equal says whether both have equal meshes and equal specs. JAX also compares
// axis types and memory kinds, which do not exist here.
func (s *NamedSharding) Equal(o *NamedSharding) bool {
	return s.spec.Equal(o.spec) && s.mesh.Equal(o.mesh)
}

// String prints the sharding as JAX does, without axis types and memory kind.
func (s *NamedSharding) String() string {
	return fmt.Sprintf("NamedSharding(mesh=%s, spec=%s)", s.mesh, s.spec)
}

// Tiles gives the number of tiles of a dimension, which may lie past the spec.
func (s *NamedSharding) Tiles(dim int) int {
	if dim >= len(s.tiles) {
		return 1
	}
	return s.tiles[dim]
}

// IsFullyReplicated says whether every device holds the whole array.
func (s *NamedSharding) IsFullyReplicated() bool {
	return !slices.ContainsFunc(s.tiles, func(k int) bool { return k > 1 })
}

// IsFullyAddressable says whether a process owns every device of the mesh. A
// process without devices addresses nothing.
func (s *NamedSharding) IsFullyAddressable(process int) bool {
	return s.mesh.NumLocal(process) == s.mesh.Size()
}

// ShardShape gives the shape of the part that each device holds.
func (s *NamedSharding) ShardShape(shape []int) ([]int, error) {
	if err := s.Check(shape); err != nil {
		return nil, err
	}
	shard := make([]int, len(shape))
	for d, n := range shape {
		shard[d] = n / s.Tiles(d)
	}
	return shard, nil
}
