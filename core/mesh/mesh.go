// Package mesh describes a device mesh as JAX does: named axes, and devices in
// row-major order over them.
//
// The order of the devices is not the order of their ids, and a process may own any
// devices of the mesh. On TPU slices, every host has scattered positions. meshfeed
// never chooses rows by the rank of a process, only by the positions of its devices
// in the mesh.
package mesh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// Limits that keep products within an int, and tables within memory.
const (
	MaxAxes    = 32
	MaxDevices = 1 << 20
)

// Axis is one named dimension of a mesh.
type Axis struct {
	Name string
	Size int
}

// Device is one device: the process that owns it, and its id. Ids are unique in the
// mesh, but need not be consecutive or in order.
type Device struct {
	Process int
	ID      int
}

// Mesh is an immutable mesh. Mesh position i is the i-th coordinate in row-major
// order. A mesh without axes has one device.
type Mesh struct {
	axes      []Axis
	devices   []Device
	processes []int   // ascending, distinct
	positions []int32 // by process, each group in mesh order
	starts    []int32 // of each process's group in positions, and the end
}

// New makes a mesh of devices over axes, and copies both. The number of devices must
// be the product of the axis sizes, and no axis name and no device id may occur
// twice, else the error is InvalidArgument. JAX accepts both and merges them.
func New(axes []Axis, devices []Device) (*Mesh, error) {
	size, err := checkAxes(axes)
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 && len(devices) != 1 {
		return nil, fail("a mesh without axes needs 1 device, but there are %d", len(devices))
	}
	if len(devices) != size {
		return nil, fail("axes %s need %d devices, but there are %d", axesText(axes), size, len(devices)).
			WithHint("give one device for every coordinate, in row-major order")
	}
	if err := checkDevices(devices); err != nil {
		return nil, err
	}
	m := &Mesh{axes: slices.Clone(axes), devices: slices.Clone(devices)}
	m.group()
	return m, nil
}

// group sorts the mesh positions by process. Processes mostly own consecutive
// devices, so the list to sort is much shorter than the list of devices.
func (m *Mesh) group() {
	last := -1
	for _, d := range m.devices {
		if d.Process != last {
			m.processes = append(m.processes, d.Process)
		}
		last = d.Process
	}
	slices.Sort(m.processes)
	m.processes = slices.Compact(m.processes)
	owner := make([]int32, len(m.devices))
	m.starts = make([]int32, len(m.processes)+1)
	for i, d := range m.devices {
		n := d.Process // index in m.processes, if every process before it owns a device
		if n >= len(m.processes) || m.processes[n] != n {
			n, _ = slices.BinarySearch(m.processes, d.Process)
		}
		owner[i] = int32(n)
		m.starts[n+1]++
	}
	for n := range m.processes {
		m.starts[n+1] += m.starts[n]
	}
	next := slices.Clone(m.starts)
	m.positions = make([]int32, len(m.devices))
	for i, n := range owner {
		m.positions[next[n]] = int32(i)
		next[n]++
	}
}

// Uniform makes a mesh of devices 0…n-1 in order. Processes 0…processes-1 own equal
// parts of them.
func Uniform(axes []Axis, processes int) (*Mesh, error) {
	size, err := checkAxes(axes)
	if err != nil {
		return nil, err
	}
	if processes < 1 {
		return nil, fail("a mesh needs at least 1 process, but there are %d", processes)
	}
	if size%processes != 0 {
		return nil, fail("%d devices cannot be shared equally by %d processes", size, processes).
			WithHint("list the devices as [process, id] pairs in mesh order")
	}
	devices := make([]Device, size)
	for i := range devices {
		devices[i] = Device{Process: i / (size / processes), ID: i}
	}
	return New(axes, devices)
}

func checkAxes(axes []Axis) (size int, err error) {
	if len(axes) > MaxAxes {
		return 0, fail("a mesh may have %d axes, but there are %d", MaxAxes, len(axes))
	}
	size = 1
	for i, a := range axes {
		if a.Name == "" {
			return 0, fail("axis %d has no name", i).WithHint("name every axis")
		}
		if a.Size < 1 {
			return 0, fail("axis %q has size %d, but the smallest size is 1", a.Name, a.Size)
		}
		for j := range i {
			if axes[j].Name == a.Name {
				return 0, fail("axis name %q is used for axes %d and %d", a.Name, j, i).WithHint("give every axis its own name")
			}
		}
		if a.Size > MaxDevices/size {
			return 0, fail("axes %s make more than %d devices", axesText(axes), MaxDevices)
		}
		size *= a.Size
	}
	return size, nil
}

// checkDevices refuses negative numbers and repeated ids.
func checkDevices(devices []Device) error {
	for i, d := range devices {
		if d.Process < 0 || d.ID < 0 {
			return fail("device %d is (process %d, id %d), but neither may be negative", i, d.Process, d.ID)
		}
	}
	if i, j, found := Repeated(devices); found {
		return fail("device id %d stands at mesh positions %d and %d", devices[i].ID, i, j).WithHint("name every device once")
	}
	return nil
}

// Repeated finds the first device whose id an earlier device has. No id may be
// negative.
func Repeated(devices []Device) (before, again int, found bool) {
	small := make([]int32, 2*len(devices)) // by id: the position of the device, plus one
	large := map[int]int32{}
	for i, d := range devices {
		at := int32(0)
		if d.ID < len(small) {
			at, small[d.ID] = small[d.ID], int32(i)+1
		} else {
			at, large[d.ID] = large[d.ID], int32(i)+1
		}
		if at > 0 {
			return int(at) - 1, i, true
		}
	}
	return 0, 0, false
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "mesh", format, args...)
}

// Axes returns a copy of the axes, in order.
func (m *Mesh) Axes() []Axis { return slices.Clone(m.axes) }

// NumAxes returns the number of axes.
func (m *Mesh) NumAxes() int { return len(m.axes) }

// Axis finds an axis by name.
func (m *Mesh) Axis(name string) (number int, axis Axis, ok bool) {
	for i, a := range m.axes {
		if a.Name == name {
			return i, a, true
		}
	}
	return 0, Axis{}, false
}

// Size returns the number of devices.
func (m *Mesh) Size() int { return len(m.devices) }

// Device returns the device at a mesh position.
func (m *Mesh) Device(position int) Device { return m.devices[position] }

// Devices returns a copy of the devices, in mesh order.
func (m *Mesh) Devices() []Device { return slices.Clone(m.devices) }

// Processes lists the processes that own devices, in ascending order.
func (m *Mesh) Processes() []int { return slices.Clone(m.processes) }

// Local lists the mesh positions that a process owns, in mesh order. It is
// empty for a process without devices in the mesh, which is legal.
func (m *Mesh) Local(process int) []int {
	group := m.local(process)
	if len(group) == 0 {
		return nil
	}
	list := make([]int, len(group))
	for i, position := range group {
		list[i] = int(position)
	}
	return list
}

// Owned lists the mesh positions that the n-th of Processes owns, in mesh order.
// The list belongs to the mesh and must not be changed.
func (m *Mesh) Owned(n int) []int32 { return m.positions[m.starts[n]:m.starts[n+1]] }

// NumLocal returns the number of devices that a process owns.
func (m *Mesh) NumLocal(process int) int { return len(m.local(process)) }

func (m *Mesh) local(process int) []int32 {
	n, ok := slices.BinarySearch(m.processes, process)
	if !ok {
		return nil
	}
	return m.Owned(n)
}

// Coordinates returns the coordinates of a mesh position.
func (m *Mesh) Coordinates(position int) []int {
	c := make([]int, len(m.axes))
	for i := len(c) - 1; i >= 0; i-- {
		c[i] = position % m.axes[i].Size
		position /= m.axes[i].Size
	}
	return c
}

// Equal reports whether both meshes have the same axes and devices in the same
// order.
func (m *Mesh) Equal(o *Mesh) bool {
	return slices.Equal(m.axes, o.axes) && slices.Equal(m.devices, o.devices)
}

// String prints the mesh as JAX does, without axis types: Mesh('data': 4, 'model':
// 2).
func (m *Mesh) String() string { return "Mesh(" + axesText(m.axes) + ")" }

func axesText(axes []Axis) string {
	parts := make([]string, len(axes))
	for i, a := range axes {
		parts[i] = fmt.Sprintf("'%s': %d", a.Name, a.Size)
	}
	return strings.Join(parts, ", ")
}
