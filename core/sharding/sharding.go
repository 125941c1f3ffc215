// Package sharding computes which part of an array each device of a mesh
// holds, exactly as jax.sharding.NamedSharding does.
//
// For dimension d whose spec entry names axes (a1, a2, …), the number of tiles
// is the product of their sizes, and a device's tile is the mixed-radix number
// of its coordinates on those axes, the first axis most significant. Axes that
// are not named replicate. A dimension must divide by its number of tiles: JAX
// has no uneven sharding of inputs, so there is none here.
package sharding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
)

// Index is the part of an array that a device holds: a full [start, stop) pair
// for every dimension.
type Index [][2]int

// Equal says whether both are the same part.
func (x Index) Equal(o Index) bool { return slices.Equal(x, o) }

// Shape gives the shape of the part.
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

// NamedSharding is a mesh and a partition spec over its axes. It is immutable.
type NamedSharding struct {
	mesh *mesh.Mesh
	spec PartitionSpec
	axes [][]int // spec as axis numbers
}

// New checks that every axis of spec is in the mesh and used once.
func New(m *mesh.Mesh, spec PartitionSpec) (*NamedSharding, error) {
	s := &NamedSharding{mesh: m, spec: spec.Clone(), axes: make([][]int, len(spec))}
	used := map[string]int{}
	for d, entry := range spec {
		for _, name := range entry {
			n, _, ok := m.Axis(name)
			if !ok {
				return nil, fail("axis %q of %s is not in %s", name, spec, m).WithHint("use one of %s", axisNames(m)).With("axis", name)
			}
			if e, dup := used[name]; dup {
				return nil, fail("axis %q of %s partitions dimension %d and dimension %d", name, spec, e, d).
					WithHint("an axis can partition one dimension once").With("axis", name)
			}
			used[name] = d
			s.axes[d] = append(s.axes[d], n)
		}
	}
	return s, nil
}

func axisNames(m *mesh.Mesh) string {
	if m.NumAxes() == 0 {
		return "no axis: the mesh has none"
	}
	names := make([]string, 0, m.NumAxes())
	for _, a := range m.Axes() {
		names = append(names, fmt.Sprintf("%q", a.Name))
	}
	return strings.Join(names, ", ")
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "sharding", format, args...)
}

// Mesh gives the mesh.
func (s *NamedSharding) Mesh() *mesh.Mesh { return s.mesh }

// Spec gives a copy of the spec.
func (s *NamedSharding) Spec() PartitionSpec { return s.spec.Clone() }

// String prints the sharding as JAX does, without the memory kind.
func (s *NamedSharding) String() string {
	return fmt.Sprintf("NamedSharding(mesh=%s, spec=%s)", s.mesh, s.spec)
}

// Tiles gives the number of tiles of a dimension.
func (s *NamedSharding) Tiles(dim int) int {
	if dim >= len(s.axes) {
		return 1
	}
	n := 1
	for _, a := range s.axes[dim] {
		n *= s.mesh.Axes()[a].Size
	}
	return n
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

// Check says whether an array of this shape can be sharded so. Of several
// dimensions that do not divide, it reports the first.
func (s *NamedSharding) Check(shape []int) error {
	if len(s.spec) > len(shape) {
		return fail("spec %s has %d entries, but shape %s has rank %d", s.spec, len(s.spec), shapeText(shape), len(shape)).
			WithHint("give at most one entry per dimension").With("rank", len(shape))
	}
	for d, n := range shape {
		if n < 0 {
			return fail("dimension %d of shape %s is negative", d, shapeText(shape))
		}
		if k := s.Tiles(d); n%k != 0 {
			return s.indivisible(shape, d, k)
		}
	}
	return nil
}

func (s *NamedSharding) indivisible(shape []int, d, k int) error {
	n := shape[d]
	var by []string
	for _, a := range s.spec[d] {
		_, axis, _ := s.mesh.Axis(a)
		by = append(by, fmt.Sprintf("%q (size %d)", a, axis.Size))
	}
	what := "axis"
	if len(by) > 1 {
		what = "axes"
	}
	near := fmt.Sprintf("%d or %d", n-n%k, n-n%k+k)
	if n < k {
		near = fmt.Sprint(k)
	}
	return fail("dimension %d of shape %s is split %d ways by %s %s, but %d %% %d = %d",
		d, shapeText(shape), k, what, strings.Join(by, ", "), n, k, n%k).
		WithHint("the nearest sizes that divide: %s", near).
		With("dimension", d).With("size", n).With("tiles", k).With("remainder", n%k)
}

func shapeText(shape []int) string {
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = fmt.Sprint(n)
	}
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// IndexAt gives the part that the device at a mesh position holds. The shape
// must pass Check.
func (s *NamedSharding) IndexAt(shape []int, position int) Index {
	c := s.mesh.Coordinates(position)
	axes := s.mesh.Axes()
	x := make(Index, len(shape))
	for d, n := range shape {
		tile := 0
		if d < len(s.axes) {
			for _, a := range s.axes[d] {
				tile = tile*axes[a].Size + c[a]
			}
		}
		size := n / s.Tiles(d)
		x[d] = [2]int{tile * size, (tile + 1) * size}
	}
	return x
}

// Map gives the index of every device and its replica number, in mesh order. A
// device's replica number is the number of earlier devices with an equal index.
func (s *NamedSharding) Map(shape []int) (indexes []Index, replicas []int, err error) {
	if err := s.Check(shape); err != nil {
		return nil, nil, err
	}
	indexes = make([]Index, s.mesh.Size())
	replicas = make([]int, s.mesh.Size())
	count := map[string]int{}
	for i := range indexes {
		indexes[i] = s.IndexAt(shape, i)
		key := indexes[i].String()
		replicas[i] = count[key]
		count[key]++
	}
	return indexes, replicas, nil
}

// IsFullyReplicated says whether every device holds the whole array.
func (s *NamedSharding) IsFullyReplicated() bool {
	for d := range s.spec {
		if s.Tiles(d) > 1 {
			return false
		}
	}
	return true
}

// IsFullyAddressable says whether a process owns every device of the mesh. A
// process without devices addresses nothing.
func (s *NamedSharding) IsFullyAddressable(process int) bool {
	return s.mesh.Size() > 0 && len(s.mesh.Local(process)) == s.mesh.Size()
}
