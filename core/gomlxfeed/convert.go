package gomlxfeed

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// Mesh gives a mesh as GoMLX has it: the logical mesh, which has the axes, and
// the device assignment, which says which device stands at each of its
// positions. Both go to an Exec, as AutoSharding(mesh) and
// WithDeviceAssignment(assignment). The id of a device is its number on d; the
// mesh may have any of them, in any order.
//
// GoMLX compares meshes by their address. So equal axes give the same logical
// mesh on the same d, here and in the tensors of every batch.
//
// The error is Unsupported for what GoMLX cannot express: devices of several
// processes, a mesh without axes, axis names that are no identifiers. It is
// OutOfRange for a device that d has not.
func Mesh(m *mesh.Mesh, d *Devices) (*distributed.DeviceMesh, []compute.DeviceNum, error) {
	if err := checkMesh(m); err != nil {
		return nil, nil, err
	}
	assignment, err := assign(m, d)
	if err != nil {
		return nil, nil, err
	}
	logical, err := d.meshes.get(m.Axes())
	if err != nil {
		return nil, nil, d.reword("make a mesh", err)
	}
	return logical, assignment, nil
}

// meshes are the logical meshes that were made. The zero value has none.
type meshes struct {
	mu   sync.Mutex
	made []*distributed.DeviceMesh
}

// get gives the one with these axes.
func (k *meshes) get(axes []mesh.Axis) (*distributed.DeviceMesh, error) {
	sizes, names := make([]int, len(axes)), make([]string, len(axes))
	for i, a := range axes {
		sizes[i], names[i] = a.Size, a.Name
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.made {
		if slices.Equal(m.AxesNames(), names) && slices.Equal(m.AxesSizes(), sizes) {
			return m, nil
		}
	}
	m, err := distributed.NewDeviceMesh(sizes, names)
	if err == nil {
		k.made = append(k.made, m)
	}
	return m, err
}

// checkMesh refuses what GoMLX cannot express.
func checkMesh(m *mesh.Mesh) error {
	if m == nil {
		return fail("there is no mesh")
	}
	if n := len(m.Processes()); n > 1 {
		return unsupported("%s has devices of %d processes, but GoMLX places on those of one", m, n).
			WithHint("give every process a mesh of its own devices")
	}
	if m.NumAxes() == 0 {
		return unsupported("the mesh has no axes, but GoMLX's have at least one").
			WithHint("give its device an axis of size 1")
	}
	for _, a := range m.Axes() {
		if !distributed.IsNameValid(a.Name) {
			return unsupported("GoMLX does not take %q as the name of a mesh axis", a.Name).
				WithHint("use letters, digits and underscores, and no digit first")
		}
	}
	return nil
}

// assign finds the devices of a mesh.
func assign(m *mesh.Mesh, d *Devices) ([]compute.DeviceNum, error) {
	assignment := make([]compute.DeviceNum, m.Size())
	for i := range assignment {
		id := m.Device(i).ID
		if id >= d.Num() {
			return nil, status.Errorf(status.OutOfRange, "gomlxfeed", "device %d stands at position %d of %s, but %s has %s", id, i, m, d.Name(), numbered(d.Num())).
				WithHint("%s", assignHint(m, d)).With("device", id).With("position", i)
		}
		assignment[i] = compute.DeviceNum(id)
	}
	return assignment, nil
}

func assignHint(m *mesh.Mesh, d *Devices) string {
	if m.Size() > d.Num() {
		return fmt.Sprintf("open at least %d devices, or use a smaller mesh", m.Size())
	}
	return fmt.Sprintf("number the devices of the mesh from 0 to %d", d.Num()-1)
}

// ShardingSpec gives a partition spec as GoMLX has it, over a mesh that Mesh gave, for
// an array of that many dimensions. It has an entry for every dimension: a
// shorter one means the same, but GoMLX takes it for a mistake in some places
// and for a whole array in others.
//
// The error is InvalidArgument if the spec has more entries than that, names an
// axis twice or one that the mesh has not.
func ShardingSpec(m *distributed.DeviceMesh, spec sharding.PartitionSpec, rank int) (*distributed.ShardingSpec, error) {
	if m == nil {
		return nil, fail("there is no mesh")
	}
	if len(spec) > rank {
		return nil, fail("%s has %d entries, but the array has %d dimensions", spec, len(spec), rank)
	}
	axes, names, used := make([]distributed.AxisSpec, rank), m.AxesNames(), map[string]bool{}
	for i, entry := range spec {
		for _, name := range entry {
			if !slices.Contains(names, name) {
				return nil, fail("%s names axis %q, but the mesh has %q", spec, name, names)
			}
			if used[name] {
				return nil, fail("%s names axis %q twice", spec, name)
			}
			used[name] = true
		}
		axes[i] = slices.Clone(entry)
	}
	return &distributed.ShardingSpec{Mesh: m, Axes: axes}, nil
}

func unsupported(format string, args ...any) *status.Error {
	return status.Errorf(status.Unsupported, "gomlxfeed", format, args...)
}
