package virtual

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/tests/random"
)

func opened(t *testing.T, n int) *Backend {
	t.Helper()
	b, err := New(n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// job is a program that returns its only input with another sharding.
type job struct {
	mesh     compute.Mesh
	devices  []compute.DeviceNum
	shape    shapes.Shape
	in, out  [][]string
	on       *Backend
	position int // devices in the mesh
}

func (j job) compile(t *testing.T) *executable {
	t.Helper()
	b := j.on.Builder("job")
	if err := b.DistributedAutoSharding(j.mesh); err != nil {
		t.Fatal(err)
	}
	if err := b.DeviceAssignment(j.devices...); err != nil {
		t.Fatal(err)
	}
	x, err := b.Main().Parameter("x", j.shape, &compute.ShardingSpec{Mesh: j.mesh.Name, Axes: j.in})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Main().Return([]compute.Value{x}, []*compute.ShardingSpec{{Mesh: j.mesh.Name, Axes: j.out}}); err != nil {
		t.Fatal(err)
	}
	e, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return e.(*executable)
}

// values returns one number per element of an array of any type.
func values(data []byte, dt dtypes.DType, n int) []string {
	list := make([]string, n)
	for i := range list {
		if bits := dt.Bits(); bits < 8 {
			list[i] = fmt.Sprint(data[i*bits/8] >> (i * bits % 8) & (1<<bits - 1))
		} else {
			list[i] = string(data[i*bits/8 : (i+1)*bits/8])
		}
	}
	return list
}

// part copies elements one by one. It is slow and unlike the code under test.
func part(whole []string, dims []int, index sharding.Index) []string {
	var list []string
	for i, v := range whole {
		inside := true
		for d, rest := len(dims)-1, i; d >= 0; d-- {
			at := rest % dims[d]
			rest /= dims[d]
			inside = inside && at >= index[d][0] && at < index[d][1]
		}
		if inside {
			list = append(list, v)
		}
	}
	return list
}

// pack is the inverse of values.
func pack(list []string, dt dtypes.DType) []byte {
	bits := dt.Bits()
	data := make([]byte, (len(list)*bits+7)/8)
	for i, v := range list {
		if bits >= 8 {
			copy(data[i*bits/8:], v)
			continue
		}
		var n byte
		_, _ = fmt.Sscan(v, &n)
		data[i*bits/8] |= n << (i * bits % 8)
	}
	return data
}

var tested = []dtypes.DType{
	dtypes.Bool, dtypes.Int8, dtypes.Int16, dtypes.Int32, dtypes.Int64, dtypes.Uint8, dtypes.Uint16, dtypes.Uint32, dtypes.Uint64,
	dtypes.Float16, dtypes.BFloat16, dtypes.Float32, dtypes.Float64, dtypes.Int4, dtypes.Uint4, dtypes.Int2, dtypes.Uint2,
}

// randomJob draws a mesh of one to three axes and two specs over it.
func randomJob(r *rand.Rand, dt dtypes.DType) job {
	j := job{mesh: compute.Mesh{Name: "m"}, position: 1}
	for i := range 1 + r.IntN(3) {
		size := 1 + r.IntN(3)
		j.mesh.AxesNames = append(j.mesh.AxesNames, fmt.Sprintf("a%d", i))
		j.mesh.AxesSizes = append(j.mesh.AxesSizes, size)
		j.position *= size
	}
	rank := r.IntN(4)
	spec := func() [][]string {
		axes := make([][]string, rank)
		for _, i := range r.Perm(len(j.mesh.AxesNames)) {
			if rank > 0 && r.IntN(3) > 0 {
				d := r.IntN(rank)
				axes[d] = append(axes[d], j.mesh.AxesNames[i])
			}
		}
		return axes
	}
	j.in, j.out = spec(), spec()
	dims := make([]int, rank)
	for d := range dims {
		dims[d] = r.IntN(3)
		for _, axes := range [][]string{j.in[d], j.out[d]} {
			for _, a := range axes {
				dims[d] *= j.mesh.AxesSizes[slices.Index(j.mesh.AxesNames, a)]
			}
		}
	}
	j.shape = shapes.Make(dt, dims...)
	return j
}

func (j job) indexes(t *testing.T, spec [][]string) []sharding.Index {
	t.Helper()
	axes := make([]mesh.Axis, len(j.mesh.AxesSizes))
	for i := range axes {
		axes[i] = mesh.Axis{Name: j.mesh.AxesNames[i], Size: j.mesh.AxesSizes[i]}
	}
	m, err := mesh.Uniform(axes, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sharding.New(m, spec)
	if err != nil {
		t.Fatal(err)
	}
	parts, _, err := s.Map(j.shape.Dimensions)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func (j job) place(t *testing.T, whole []string) []compute.Buffer {
	t.Helper()
	var list []compute.Buffer
	for i, index := range j.indexes(t, j.in) {
		b, flat, err := j.on.NewSharedBuffer(j.devices[i], shapes.Make(j.shape.DType, index.Shape()...))
		if err != nil {
			t.Fatal(err)
		}
		copy(dtypes.UnsafeByteSliceFromAny(flat), pack(part(whole, j.shape.Dimensions, index), j.shape.DType))
		list = append(list, b)
	}
	return list
}

// TestReshard runs programs that take random arrays with one sharding and return
// them with another, on permuted devices.
func TestReshard(t *testing.T) {
	r := random.New(t)
	for range 400 {
		j := randomJob(r, tested[r.IntN(len(tested))])
		j.on = opened(t, j.position+r.IntN(3))
		for _, d := range r.Perm(j.on.n)[:j.position] {
			j.devices = append(j.devices, compute.DeviceNum(d))
		}
		data := make([]byte, j.shape.ByteSize())
		for i := range data {
			data[i] = byte(r.Uint32())
			if j.shape.DType == dtypes.Bool {
				data[i] &= 1
			}
		}
		whole := values(data, j.shape.DType, j.shape.Size())
		out, err := j.compile(t).Execute(j.place(t, whole), nil, 0)
		if err != nil {
			t.Fatalf("%+v: %v", j, err)
		}
		for i, index := range j.indexes(t, j.out) {
			dev, _ := out[i].DeviceNum()
			got, err := bytesOf(out[i].(*buffer).Buffer)
			want := part(whole, j.shape.Dimensions, index)
			if err != nil || dev != j.devices[i] || !slices.Equal(values(got, j.shape.DType, len(want)), want) {
				t.Fatalf("%+v\nposition %d: on device %d, %q (%v)\nwant on %d, %q", j, i, dev, got, err, j.devices[i], want)
			}
		}
	}
}

// spy records the inputs and outputs of the engine.
type spy struct {
	compute.Executable
	inputs, outputs []compute.Buffer
}

func (s *spy) Execute(in []compute.Buffer, donate []bool, dev compute.DeviceNum) ([]compute.Buffer, error) {
	out, err := s.Executable.Execute(in, donate, dev)
	s.inputs, s.outputs = slices.Clone(in), slices.Clone(out)
	return out, err
}

func alive(b compute.Buffer) bool {
	shape, err := b.Shape()
	return err == nil && shape.Ok()
}

func TestTemporariesAreFreed(t *testing.T) {
	on := opened(t, 4)
	devices := []compute.DeviceNum{3, 1, 0, 2}
	m := compute.Mesh{Name: "m", AxesSizes: []int{4}, AxesNames: []string{"d"}}
	for _, c := range []struct {
		in         [][]string
		mergedDies bool
	}{{[][]string{{"d"}}, true}, {nil, false}} {
		j := job{mesh: m, devices: devices, shape: shapes.Make(dtypes.Int32, 8), in: c.in, out: [][]string{{"d"}}, on: on, position: 4}
		x := j.compile(t)
		s := &spy{Executable: x.Executable}
		x.Executable = s
		in := j.place(t, values(bytes.Repeat([]byte{7}, 32), dtypes.Int32, 8))
		out, err := x.Execute(in, []bool{false, true, false, false}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if alive(s.inputs[0]) == c.mergedDies || alive(s.outputs[0]) {
			t.Errorf("in %v: merged input alive %v, whole output alive %v", c.in, alive(s.inputs[0]), alive(s.outputs[0]))
		}
		for i, b := range in {
			if alive(b) == (i == 1) {
				t.Errorf("in %v: input %d alive: %v; only number 1 was donated", c.in, i, alive(b))
			}
			if !alive(out[i]) {
				t.Errorf("output %d is dead", i)
			}
		}
	}
}

func TestExecuteChecksInputs(t *testing.T) {
	on := opened(t, 3)
	j := job{
		mesh: compute.Mesh{Name: "m", AxesSizes: []int{2}, AxesNames: []string{"d"}}, devices: []compute.DeviceNum{2, 0},
		shape: shapes.Make(dtypes.Float32, 4), in: [][]string{{"d"}}, on: on, position: 2,
	}
	x := j.compile(t)
	good := j.place(t, values(make([]byte, 16), dtypes.Float32, 4))
	foreign := job{mesh: j.mesh, devices: j.devices, shape: j.shape, in: j.in, on: opened(t, 3)}.place(t, values(make([]byte, 16), dtypes.Float32, 4))
	long, err := on.BufferFromFlatData(0, make([]float32, 3), shapes.Make(dtypes.Float32, 3))
	if err != nil {
		t.Fatal(err)
	}
	typed, err := on.BufferFromFlatData(0, make([]int32, 2), shapes.Make(dtypes.Int32, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in     []compute.Buffer
		donate []bool
		want   string
	}{
		{good[:1], nil, "virtual: the program takes 1 inputs on each of 2 devices, but got 1"},
		{good, []bool{true}, "virtual: 2 inputs need as many donate flags, got 1"},
		{[]compute.Buffer{good[1], good[0]}, nil, "virtual: parameter x is on device 0, but the program needs it on device 2"},
		{foreign, nil, "virtual: parameter x is not a buffer of this backend"},
		{[]compute.Buffer{good[0], long}, nil, "virtual: parameter x of shape (Float32)[4] needs a shard of (Float32)[2] on device 0, but got (Float32)[3]"},
		{[]compute.Buffer{good[0], typed}, nil, "virtual: parameter x of shape (Float32)[4] needs a shard of (Float32)[2] on device 0, but got (Int32)[2]"},
	} {
		if _, err := x.Execute(c.in, c.donate, 0); err == nil || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	if _, err := x.Execute(good, nil, 0); err != nil {
		t.Error(err)
	}
}

func TestConcurrentRuns(t *testing.T) {
	on := opened(t, 8)
	j := job{
		mesh:  compute.Mesh{Name: "m", AxesSizes: []int{4, 2}, AxesNames: []string{"a", "b"}},
		shape: shapes.Make(dtypes.Float32, 8, 4), in: [][]string{{"a"}}, out: [][]string{{"b"}, {"a"}}, on: on, position: 8,
	}
	for i := range 8 {
		j.devices = append(j.devices, compute.DeviceNum((3*i+1)%8))
	}
	x := j.compile(t)
	data := make([]byte, 128)
	for i := range data {
		data[i] = byte(i)
	}
	whole := values(data, dtypes.Float32, 32)
	in, parts := j.place(t, whole), j.indexes(t, j.out)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				out, err := x.Execute(in, nil, 0)
				if err != nil {
					t.Error(err)
					return
				}
				for i, b := range out {
					got, _ := bytesOf(b.(*buffer).Buffer)
					if !slices.Equal(values(got, dtypes.Float32, 4), part(whole, j.shape.Dimensions, parts[i])) {
						t.Errorf("position %d is wrong", i)
					}
				}
			}
		})
	}
	group.Wait()
}
