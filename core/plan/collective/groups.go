package collective

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Groups lists the groups of devices that communicate in a collective over the
// named axes of a mesh, as JAX passes them to XLA in replica_groups. The numbers
// are mesh positions, which XLA calls logical ids. A group has the devices that
// differ in these axes only, in row-major order over the axes as they are named.
// The groups are in row-major order over the other axes.
//
//	mesh (data 2, model 2)    over "data"    {0 2} {1 3}
//	                          over "model"   {0 1} {2 3}
func Groups(m *mesh.Mesh, axes []string) ([][]int, error) {
	var inside []axis
	named := map[string]bool{}
	for _, name := range axes {
		number, a, ok := m.Axis(name)
		switch {
		case !ok:
			return nil, fail("the mesh has no axis %s", wording.Quote(name)).WithHint("it is %s", m)
		case named[name]:
			return nil, fail("axis %s is named twice", wording.Quote(name)).WithHint("name every axis once")
		}
		named[name] = true
		inside = append(inside, axis{a.Size, stride(m, number)})
	}
	var outside []axis
	for i, a := range m.Axes() {
		if !named[a.Name] {
			outside = append(outside, axis{a.Size, stride(m, i)})
		}
	}
	first, offsets := positions(outside), positions(inside)
	groups, all := make([][]int, len(first)), make([]int, 0, m.Size())
	for i, start := range first {
		for _, offset := range offsets {
			all = append(all, start+offset)
		}
		groups[i] = slices.Clip(all[len(all)-len(offsets):])
	}
	return groups, nil
}

// axis is the size of an axis, and the distance of its neighbors.
type axis struct{ size, stride int }

func stride(m *mesh.Mesh, number int) int {
	n := 1
	for _, a := range m.Axes()[number+1:] {
		n *= a.Size
	}
	return n
}

// positions lists the mesh positions over some axes, with coordinate 0 in all
// others, in row-major order.
func positions(axes []axis) []int {
	list := []int{0}
	for _, a := range axes {
		next := make([]int, 0, len(list)*a.size)
		for _, p := range list {
			for i := range a.size {
				next = append(next, p+i*a.stride)
			}
		}
		list = next
	}
	return list
}
