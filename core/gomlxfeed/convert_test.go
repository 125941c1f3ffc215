package gomlxfeed

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

func TestMesh(t *testing.T) {
	_, d := newCountingBackend(t, 8, true)
	axes := []mesh.Axis{{Name: "data", Size: 3}, {Name: "_m2", Size: 2}}
	var devices []mesh.Device
	for _, id := range []int{7, 0, 3, 1, 6, 2} {
		devices = append(devices, mesh.Device{ID: id, Process: 5})
	}
	m, err := mesh.New(axes, devices)
	if err != nil {
		t.Fatal(err)
	}
	logical, assignment, err := Mesh(m, d)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(assignment, []compute.DeviceNum{7, 0, 3, 1, 6, 2}) || logical.LogicalDeviceAssignment() != nil {
		t.Errorf("assigned %v, logically %v", assignment, logical.LogicalDeviceAssignment())
	}
	if !slices.Equal(logical.AxesNames(), []string{"data", "_m2"}) || !slices.Equal(logical.AxesSizes(), []int{3, 2}) {
		t.Errorf("mesh %s", logical)
	}
	ordered, _ := mesh.Uniform(axes, 1)
	if again, _, _ := Mesh(ordered, d); again != logical {
		t.Error("equal axes give another mesh, which GoMLX takes for a different one")
	}
	for _, others := range [][]mesh.Axis{{axes[1], axes[0]}, {axes[0], {Name: "other", Size: 2}}, {axes[0], {Name: "_m2", Size: 1}}} {
		m, _ := mesh.Uniform(others, 1)
		if other, _, _ := Mesh(m, d); other == logical {
			t.Errorf("the axes %v give the same mesh", others)
		}
	}
}

func TestMeshErrors(t *testing.T) {
	_, d := newCountingBackend(t, 8, true)
	uniform := func(processes int, axes ...mesh.Axis) *mesh.Mesh {
		m, err := mesh.Uniform(axes, processes)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	far, err := mesh.New([]mesh.Axis{{Name: "a", Size: 2}}, []mesh.Device{{ID: 1}, {ID: 8}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    *mesh.Mesh
		code status.Code
		text string
	}{
		{nil, status.InvalidArgument, "gomlxfeed: there is no mesh"},
		{uniform(2, mesh.Axis{Name: "a", Size: 4}), status.Unsupported,
			"gomlxfeed: Mesh('a': 4) has devices of 2 processes, but GoMLX places on devices of one process; give every process a mesh of its own devices"},
		{uniform(1), status.Unsupported, "gomlxfeed: the mesh has no axes, but GoMLX's have at least one; give its device an axis of size 1"},
		{uniform(1, mesh.Axis{Name: "data-x", Size: 2}), status.Unsupported,
			`gomlxfeed: GoMLX does not take "data-x" as the name of a mesh axis; use letters, digits and underscores, and no digit first`},
		{uniform(1, mesh.Axis{Name: "2d", Size: 2}), status.Unsupported,
			`gomlxfeed: GoMLX does not take "2d" as the name of a mesh axis; use letters, digits and underscores, and no digit first`},
		{uniform(1, mesh.Axis{Name: "größe", Size: 2}), status.Unsupported,
			`gomlxfeed: GoMLX does not take "größe" as the name of a mesh axis; use letters, digits and underscores, and no digit first`},
		{uniform(1, mesh.Axis{Name: "a", Size: 9}), status.OutOfRange,
			"gomlxfeed: position 8 of Mesh('a': 9) is device 8, but counting has devices 0 to 7; open at least 9 devices, or use a smaller mesh"},
		{far, status.OutOfRange,
			"gomlxfeed: position 1 of Mesh('a': 2) is device 8, but counting has devices 0 to 7; number the devices of the mesh from 0 to 7"},
	} {
		_, _, err := Mesh(c.m, d)
		wantText(t, err, c.code, c.text)
	}
}

func TestShardingSpec(t *testing.T) {
	m, err := distributed.NewDeviceMesh([]int{2, 3}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec sharding.PartitionSpec
		rank int
		text string
	}{
		{sharding.P(), 0, "ShardingSpec{mesh=mesh, axes=[]}"},
		{sharding.P(), 2, "ShardingSpec{mesh=mesh, axes=[R, R]}"},
		{sharding.P("b"), 3, "ShardingSpec{mesh=mesh, axes=[S(b), R, R]}"},
		{sharding.P(nil, []string{"b", "a"}), 2, "ShardingSpec{mesh=mesh, axes=[R, S(b,a)]}"},
		{sharding.P("a", nil, "b"), 3, "ShardingSpec{mesh=mesh, axes=[S(a), R, S(b)]}"},
	} {
		s, err := ShardingSpec(m, c.spec, c.rank)
		if err != nil || s.String() != c.text || s.Mesh != m || s.Validate() != nil || s.Rank() != c.rank {
			t.Errorf("%s in %d dimensions: %s (%v)", c.spec, c.rank, s, err)
		}
	}
	for _, c := range []struct {
		m    *distributed.DeviceMesh
		spec sharding.PartitionSpec
		rank int
		text string
	}{
		{nil, sharding.P("a"), 1, "gomlxfeed: there is no mesh"},
		{m, sharding.P("a", "b"), 1, "gomlxfeed: P('a', 'b') has 2 entries, but the array has 1 dimensions"},
		{m, sharding.P("c"), 1, `gomlxfeed: P('c',) names axis "c", but the mesh has ["a" "b"]`},
		{m, sharding.P("a", []string{"b", "a"}), 2, `gomlxfeed: P('a', ('b', 'a')) names axis "a" twice`},
	} {
		_, err := ShardingSpec(c.m, c.spec, c.rank)
		wantText(t, err, status.InvalidArgument, c.text)
	}
}
