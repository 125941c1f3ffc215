package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
)

func axes(sizes ...int) []mesh.Axis {
	list := make([]mesh.Axis, len(sizes))
	for i, n := range sizes {
		list[i] = mesh.Axis{Name: string(rune('a' + i)), Size: n}
	}
	return list
}

func TestErrors(t *testing.T) {
	two := []mesh.Device{{0, 0}, {0, 1}}
	for _, c := range []struct {
		axes    []mesh.Axis
		devices []mesh.Device
		want    string
	}{
		{[]mesh.Axis{{"", 2}}, two, `mesh: an axis has no name; a name has at least one character`},
		{[]mesh.Axis{{"x", 0}}, nil, `mesh: axis "x" has size 0, but the smallest size is 1`},
		{[]mesh.Axis{{"x", -2}}, nil, `mesh: axis "x" has size -2, but the smallest size is 1`},
		{[]mesh.Axis{{"x", 2}, {"y", 1}, {"x", 1}}, two, `mesh: axis "x" has the same name as axis 0; give every axis its own name`},
		{axes(1<<11, 1<<10), nil, `mesh: axis "b" of size 1024 makes the mesh larger than 1048576 devices`},
		{axes(1<<62, 1<<62), nil, `mesh: axis "a" of size 4611686018427387904 makes the mesh larger than 1048576 devices`},
		{axes(slices.Repeat([]int{1}, 33)...), two[:1], `mesh: there are 33 axes, but a mesh may have 32`},
		{axes(4), two, `mesh: there are 2 devices, but the axes need 4; give one device for every coordinate, in row-major order`},
		{nil, two, `mesh: there are 2 devices, but the axes need 1; give one device for every coordinate, in row-major order`},
		{axes(2), []mesh.Device{{0, 7}, {1, 7}}, `mesh: id 7 is also at mesh position 0; name every device once`},
		{axes(2), []mesh.Device{{0, 0}, {1, 0}}, `mesh: id 0 is also at mesh position 0; name every device once`},
		{axes(3), []mesh.Device{{0, 7}, {1, 3}, {1, 7}}, `mesh: id 7 is also at mesh position 0; name every device once`},
		{axes(2), []mesh.Device{{0, 1}, {-1, 2}}, `mesh: the device is [-1, 2], but a process is from 0 to 2147483647 and an id from 0 to 2^53`},
		{axes(2), []mesh.Device{{0, -1}, {0, 2}}, `mesh: the device is [0, -1], but a process is from 0 to 2147483647 and an id from 0 to 2^53`},
	} {
		m, err := mesh.New(c.axes, c.devices)
		if err == nil || err.Error() != c.want || status.CodeOf(err) != status.InvalidArgument || m != nil {
			t.Errorf("New(%v, %v)\n got %v\nwant %s", c.axes, c.devices, err, c.want)
		}
	}
}

func TestUniformErrors(t *testing.T) {
	for processes, want := range map[int]string{
		0:  `mesh: a mesh needs at least 1 process, but there are 0`,
		-3: `mesh: a mesh needs at least 1 process, but there are -3`,
		3:  `mesh: 8 devices cannot be shared equally by 3 processes; list the devices as [process, id] pairs in mesh order`,
		16: `mesh: 8 devices cannot be shared equally by 16 processes; list the devices as [process, id] pairs in mesh order`,
	} {
		if _, err := mesh.Uniform(axes(4, 2), processes); err == nil || err.Error() != want {
			t.Errorf("%d processes: got %v, want %s", processes, err, want)
		}
	}
	if _, err := mesh.Uniform(axes(0), 1); err == nil {
		t.Error("an axis of size 0 was accepted")
	}
}

// A process may own scattered devices or none, and ids need not be consecutive.
func TestScatteredDevices(t *testing.T) {
	devices := []mesh.Device{{5, 4096}, {0, 2}, {5, 1}, {2, 2048}}
	m, err := mesh.New(axes(2, 2), devices)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Processes(); !slices.Equal(got, []int{0, 2, 5}) {
		t.Errorf("Processes() = %v", got)
	}
	for process, want := range map[int][]int{0: {1}, 2: {3}, 5: {0, 2}, 1: nil, 6: nil, -1: nil} {
		n := slices.Index(m.Processes(), process)
		if n >= 0 && len(m.Owned(n)) != len(want) {
			t.Errorf("Owned(%d) = %v, want %v", n, m.Owned(n), want)
		}
		if got := m.Local(process); !slices.Equal(got, want) {
			t.Errorf("Local(%d) = %v, want %v", process, got, want)
		}
	}
	for i, d := range devices {
		if m.Device(i) != d {
			t.Errorf("Device(%d) = %v, want %v", i, m.Device(i), d)
		}
	}
}

// A caller that changes its lists does not change the mesh.
func TestImmutable(t *testing.T) {
	list, devices := axes(2), []mesh.Device{{0, 0}, {1, 1}}
	m, err := mesh.New(list, devices)
	if err != nil {
		t.Fatal(err)
	}
	list[0].Name, devices[0].ID = "z", 9
	m.Axes()[0].Size, m.Processes()[0], m.Local(0)[0] = 9, 9, 9
	if m.String() != "Mesh('a': 2)" || m.Device(0).ID != 0 || m.Processes()[0] != 0 || m.Local(0)[0] != 0 {
		t.Errorf("the mesh changed: %v %v", m, m.Device(0))
	}
}

func TestAxis(t *testing.T) {
	m, err := mesh.Uniform(axes(2, 1, 3), 1)
	if err != nil {
		t.Fatal(err)
	}
	if n, axis, ok := m.Axis("c"); n != 2 || axis.Size != 3 || !ok {
		t.Errorf("Axis(c) = %d, %v, %v", n, axis, ok)
	}
	if _, _, ok := m.Axis("d"); ok {
		t.Error("there is no axis d")
	}
}

func TestWithoutAxes(t *testing.T) {
	m, err := mesh.New(nil, []mesh.Device{{3, 7}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Size() != 1 || m.NumAxes() != 0 || m.String() != "Mesh()" {
		t.Errorf("%v has %d devices", m, m.Size())
	}
}

func BenchmarkUniform(b *testing.B) {
	for b.Loop() {
		if _, err := mesh.Uniform(axes(1<<10, 1<<10), 1<<17); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleMesh() {
	m, err := mesh.Uniform([]mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}, 4)
	if err != nil {
		panic(err)
	}
	fmt.Println(m)
	fmt.Println(m.Local(1), m.Device(3))
	// Output:
	// Mesh('data': 4, 'model': 2)
	// [2 3] {1 3}
}

func ExampleNew() {
	_, err := mesh.New([]mesh.Axis{{Name: "data", Size: 2}}, []mesh.Device{{Process: 0, ID: 0}})
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n"))
	// Output:
	// mesh: there are 1 devices, but the axes need 2
	// give one device for every coordinate, in row-major order
}
