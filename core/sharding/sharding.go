// Package sharding computes which part of an array each device of a mesh
// holds, exactly as jax.sharding.NamedSharding does.
//
// For dimension d whose spec entry names axes (a1, a2, …), the number of tiles is
// the product of their sizes. The tile of a device is the mixed-radix number of its
// coordinates on those axes, with the first axis most significant. Axes that are
// not named replicate. The number of tiles must divide the dimension: JAX has no
// uneven sharding of inputs, so this package has none.
//
// [NamedSharding.Map] returns the indexes of all devices, and [NamedSharding.Local]
// those of any process. Both use [Tiling], which numbers the distinct parts and is
// fast for large meshes. tests/conformance compares this package with tables that
// JAX made.
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

// New makes a sharding. Every axis of spec must be in the mesh and occur once, else
// the error is InvalidArgument.
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

// checkUnique refuses a spec that names an axis twice.
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

// axisNames lists the axes that a spec may name.
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

// Mesh returns the mesh.
func (s *NamedSharding) Mesh() *mesh.Mesh { return s.mesh }

// Spec returns a copy of the spec.
func (s *NamedSharding) Spec() PartitionSpec { return s.spec.Clone() }

// Equal reports whether both have equal meshes and equal specs. JAX also compares
// axis types and memory kinds, which this package does not have.
func (s *NamedSharding) Equal(o *NamedSharding) bool {
	return s.spec.Equal(o.spec) && s.mesh.Equal(o.mesh)
}

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

// IsFullyAddressable reports whether a process owns every device of the mesh.
func (s *NamedSharding) IsFullyAddressable(process int) bool {
	return s.mesh.NumLocal(process) == s.mesh.Size()
}

// ShardShape returns the shape of the part that each device holds.
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
