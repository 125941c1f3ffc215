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
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Limits that keep products within an int, and tables within memory.
const (
	MaxAxes    = 32
	MaxDevices = 1 << 20

	maxProcess = 1<<31 - 1 // the largest number of a process
	maxID      = 1 << 53   // the largest id of a device: JSON holds it exactly
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
	positions []int32 // mesh positions, grouped by process; each group in mesh order
	starts    []int32 // start of each process's group in positions, and the end
}

// New makes a mesh of devices over axes, and copies both. The error comes from CheckAxes or
// from CheckDevices.
func New(axes []Axis, devices []Device) (*Mesh, error) {
	size, err := CheckAxes(axes)
	if err != nil {
		return nil, err
	}
	if err := CheckDevices(devices, size); err != nil {
		return nil, err
	}
	return build(axes, slices.Clone(devices)), nil
}

// build makes a mesh of devices that CheckDevices accepts, without copying them. It
// sorts the mesh positions by process. Processes mostly own consecutive devices, so
// the list of processes to sort is much shorter than the list of devices.
func build(axes []Axis, devices []Device) *Mesh {
	m := &Mesh{axes: slices.Clone(axes), devices: devices}
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
	return m
}

// Uniform makes a mesh of devices 0…n-1 in order. Processes 0…processes-1 own equal
// parts of them.
func Uniform(axes []Axis, processes int) (*Mesh, error) {
	size, err := CheckAxes(axes)
	if err != nil {
		return nil, err
	}
	if processes < 1 {
		return nil, fail("/processes", "a mesh needs at least 1 process, but there are %d", processes)
	}
	if size%processes != 0 {
		return nil, fail("/processes", "%d devices cannot be shared equally by %d processes", size, processes).
			WithHint("list the devices as [process, id] pairs in mesh order")
	}
	devices := make([]Device, size)
	for i := range devices {
		devices[i] = Device{Process: i / (size / processes), ID: i}
	}
	return build(axes, devices), nil
}

// CheckAxes checks the names and sizes of axes, and returns the number of devices
// that they need. A name may occur once: JAX accepts a repeated name and merges the
// axes. The error is InvalidArgument. Its attribute "path" is a JSON Pointer into
// the mesh of a layout document.
func CheckAxes(axes []Axis) (size int, err error) {
	if len(axes) > MaxAxes {
		return 0, fail("/axes", "there are %d axes, but a mesh may have %d", len(axes), MaxAxes)
	}
	size = 1
	for i, a := range axes {
		name, number := fmt.Sprintf("/axes/%d/0", i), fmt.Sprintf("/axes/%d/1", i)
		if a.Name == "" {
			return 0, fail(name, "an axis has no name").WithHint("a name has at least one character")
		}
		if j := slices.IndexFunc(axes, func(b Axis) bool { return b.Name == a.Name }); j < i {
			return 0, fail(name, "axis %s has the same name as axis %d", wording.Quote(a.Name), j).WithHint("give every axis its own name")
		}
		if a.Size < 1 {
			return 0, fail(number, "axis %s has size %d, but the smallest size is 1", wording.Quote(a.Name), a.Size)
		}
		if a.Size > MaxDevices/size {
			return 0, fail(number, "axis %s of size %d makes the mesh larger than %d devices", wording.Quote(a.Name), a.Size, MaxDevices)
		}
		size *= a.Size
	}
	return size, nil
}

// CheckDevices checks that there are size devices with numbers in their bounds, and that no
// id occurs twice: JAX accepts a repeated id and merges the devices. The error is as in
// CheckAxes.
func CheckDevices(devices []Device, size int) error {
	if len(devices) != size {
		return fail("/devices", "there are %d devices, but the axes need %d", len(devices), size).
			WithHint("give one device for every coordinate, in row-major order")
	}
	for i, d := range devices {
		if d.Process < 0 || d.ID < 0 || d.Process > maxProcess || d.ID > maxID {
			return fail(fmt.Sprintf("/devices/%d", i), "the device is [%d, %d], but a process is from 0 to %d and an id from 0 to 2^53", d.Process, d.ID, maxProcess)
		}
	}
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
			return fail(fmt.Sprintf("/devices/%d/1", i), "id %d is also at mesh position %d", d.ID, at-1).WithHint("name every device once")
		}
	}
	return nil
}

func fail(path, format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "mesh", format, args...).With("path", path)
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

// Processes lists the processes that own devices, in ascending order.
func (m *Mesh) Processes() []int { return slices.Clone(m.processes) }

// Local lists the mesh positions that a process owns, in mesh order. It is
// empty for a process without devices in the mesh, which is legal.
func (m *Mesh) Local(process int) []int {
	n, ok := slices.BinarySearch(m.processes, process)
	if !ok {
		return nil
	}
	list := make([]int, len(m.Owned(n)))
	for i, position := range m.Owned(n) {
		list[i] = int(position)
	}
	return list
}

// Owned lists the mesh positions that the n-th of Processes owns, in mesh order.
// The list belongs to the mesh and must not be changed.
func (m *Mesh) Owned(n int) []int32 { return m.positions[m.starts[n]:m.starts[n+1]] }

// String prints the mesh as JAX does, without axis types: Mesh('data': 4, 'model':
// 2).
func (m *Mesh) String() string {
	parts := make([]string, len(m.axes))
	for i, a := range m.axes {
		parts[i] = fmt.Sprintf("'%s': %d", a.Name, a.Size)
	}
	return "Mesh(" + strings.Join(parts, ", ") + ")"
}
