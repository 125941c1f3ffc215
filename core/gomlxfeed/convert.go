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

// Mesh converts a mesh to GoMLX's two parts: the logical mesh with the axes, and
// the device assignment, which lists the device at each mesh position. Pass both
// to an Exec, as AutoSharding(mesh) and WithDeviceAssignment(assignment). The id
// of a device is its number on d; a mesh may use any devices in any order.
//
// GoMLX compares meshes by address. So for the same d and equal axes, Mesh
// returns the same logical mesh, which the tensors of every batch use too.
//
// The error is Unsupported for a mesh that GoMLX cannot express: devices of
// several processes, no axes, or axis names that are not identifiers. It is
// OutOfRange if d does not have a device of the mesh.
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

// meshes caches logical meshes by their axes. The zero value is empty.
type meshes struct {
	mu   sync.Mutex
	list []*distributed.DeviceMesh
}

// get returns the logical mesh with these axes, and creates it if needed.
func (k *meshes) get(axes []mesh.Axis) (*distributed.DeviceMesh, error) {
	sizes, names := make([]int, len(axes)), make([]string, len(axes))
	for i, a := range axes {
		sizes[i], names[i] = a.Size, a.Name
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.list {
		if slices.Equal(m.AxesNames(), names) && slices.Equal(m.AxesSizes(), sizes) {
			return m, nil
		}
	}
	m, err := distributed.NewDeviceMesh(sizes, names)
	if err == nil {
		k.list = append(k.list, m)
	}
	return m, err
}

// checkMesh rejects meshes that GoMLX cannot express.
func checkMesh(m *mesh.Mesh) error {
	if m == nil {
		return fail("there is no mesh")
	}
	if n := len(m.Processes()); n > 1 {
		return unsupported("%s has devices of %d processes, but GoMLX places on devices of one process", m, n).
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

// assign returns the device number at each mesh position.
func assign(m *mesh.Mesh, d *Devices) ([]compute.DeviceNum, error) {
	assignment := make([]compute.DeviceNum, m.Size())
	for i := range assignment {
		id := m.Device(i).ID
		if id >= d.Num() {
			return nil, status.Errorf(status.OutOfRange, "gomlxfeed", "position %[2]d of %[3]s is device %[1]d, but %[4]s has %[5]s", id, i, m, d.Name(), numbered(d.Num())).
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

// ShardingSpec converts the partition spec of an array with rank dimensions to
// GoMLX's form, over a mesh that Mesh returned. The result has an entry for every
// dimension. A shorter one would mean the same, but parts of GoMLX reject it and
// others treat the array as replicated.
//
// The error is InvalidArgument if the spec has more than rank entries, or names
// an axis twice or one that the mesh does not have.
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
