package virtual

import (
	"iter"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func raw(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// rows distributes the rows of v, with cols columns, evenly over the devices.
func rows(b *Backend, spec *distributed.ShardingSpec, devices []compute.DeviceNum, v []float32, cols int) *dtensor.Tensor {
	each := len(v) / len(devices)
	shards := make([]*tensors.Tensor, len(devices))
	for i, d := range devices {
		shards[i] = must(tensors.FromRaw(b, d, shapes.Make(dtypes.Float32, each/cols, cols), raw(v[i*each:][:each])))
	}
	return must(dtensor.NewTensor(spec, shards))
}

func numbers(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%13)/7 - 1
	}
	return v
}

// TestProgram compares a sharded run with a run of the engine.
func TestProgram(t *testing.T) {
	program := func(x *graph.Node) []*graph.Node {
		return []*graph.Node{graph.Tanh(graph.MulScalar(x, 0.5)), graph.ReduceSum(x, 0)}
	}
	for _, n := range []int{2, 8, 64, 200} {
		const cols = 6
		v := numbers(2 * n * cols)
		whole := must(graph.NewExec(must(gobackend.New("")), program))
		want := must(whole.Call(tensors.FromFlatDataAndDimensions(v, 2*n, cols)))
		b := opened(t, n)
		m := must(distributed.NewDeviceMesh([]int{n}, []string{"d"}))
		spec := must(distributed.BuildSpec(m).S("d").R().Done())
		devices := make([]compute.DeviceNum, n)
		for i := range devices {
			devices[i] = compute.DeviceNum(n - 1 - i)
		}
		e := must(graph.NewExec(b, program)).AutoSharding(m).WithDeviceAssignment(devices).
			WithInputShardingSpecs(spec).WithOutputShardingSpecs(spec, distributed.NewReplicatedShardingSpec(m))
		got := must(e.DistributedCall(rows(b, spec, devices, v, cols)))
		for i, shard := range got[0].Shards() {
			if d := must(shard.Device()); d != devices[i] {
				t.Fatalf("%d devices: shard %d is on device %d, not %d", n, i, d, devices[i])
			}
		}
		for i := range want {
			merged := must(got[i].Merge())
			if !merged.Equal(want[i]) {
				t.Errorf("%d devices: output %d differs", n, i)
			}
		}
	}
}

// refused calls e twice. If the builder fails before Compile, GoMLX panics at the
// first call and hangs at the second.
func refused(t *testing.T, e *graph.Exec, arg *dtensor.Tensor, want string) {
	t.Helper()
	done := make(chan error, 2)
	for range 2 {
		go func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("panic: %.200v", r)
					done <- nil
				}
			}()
			_, err := e.DistributedCall(arg)
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the second call hangs")
		}
	}
	e.Finalize()
}

func TestWhatIsRefused(t *testing.T) {
	b := opened(t, 4)
	m := must(distributed.NewDeviceMesh([]int{2}, []string{"d"}))
	swapped := must(distributed.NewDeviceMesh([]int{2}, []string{"d"}))
	if err := swapped.SetLogicalDeviceAssignment(1, 0); err != nil {
		t.Fatal(err)
	}
	four := must(distributed.NewDeviceMesh([]int{4}, []string{"e"}))
	four.SetName("four")
	in := must(distributed.BuildSpec(m).S("d").R().Done())
	devices := []compute.DeviceNum{0, 1}
	arg := func() *dtensor.Tensor { return rows(b, in, devices, numbers(12), 3) }
	exec := func(fn func(*graph.Node) *graph.Node) *graph.Exec {
		return must(graph.NewExec(b, fn)).WithInputShardingSpecs(in)
	}
	neg := func(x *graph.Node) *graph.Node { return graph.Neg(x) }
	sum := func(x *graph.Node) *graph.Node {
		return x.Graph().Distributed().Along("d").AllReduceOne(x, compute.ReduceOpSum)
	}
	const spmd = "virtual: a program of strategy SPMD needs collectives, which virtual devices do not have; use AutoSharding, or the XLA CPU plugin"
	refused(t, must(graph.NewExec(b, neg)).SPMD(m), arg(), spmd)
	refused(t, must(graph.NewExec(b, sum)).SPMD(m), arg(), spmd)
	refused(t, exec(neg).AutoSharding(m).WithOutputShardingSpecs(must(distributed.BuildSpec(m).R().S("d").Done())), arg(),
		"virtual: output 0: sharding: dimension 1 of shape (4, 3) is split 2 ways by axis \"d\" (size 2), but 3 % 2 = 1")
	refused(t, exec(neg).AutoSharding(m, four).WithOutputShardingSpecs(in), must(dtensor.NewTensor(distributed.NewReplicatedShardingSpec(four), fours(b))),
		"virtual: mesh \"four\" has 4 devices, but mesh \"mesh\" has 2: the meshes of a program need equally many")
	outIn := must(distributed.BuildSpec(swapped).S("d").R().Done())
	refused(t, must(graph.NewExec(b, neg)).AutoSharding(swapped).WithInputShardingSpecs(outIn).WithOutputShardingSpecs(outIn), arg(),
		"virtual: mesh \"mesh\" has a logical device assignment, which GoMLX's distributed tensors ignore; keep the mesh in order and permute the devices by the device assignment")
}

// A complex parameter can be placed, but not computed with.
func TestComplexParameter(t *testing.T) {
	b := opened(t, 2)
	m := must(distributed.NewDeviceMesh([]int{2}, []string{"d"}))
	spec := must(distributed.BuildSpec(m).S("d").Done())
	shards := make([]*tensors.Tensor, 2)
	for i := range shards {
		shards[i] = must(tensors.FromRaw(b, compute.DeviceNum(i), shapes.Make(dtypes.Complex64, 2), make([]byte, 16)))
	}
	e := must(graph.NewExec(b, func(x *graph.Node) *graph.Node { return graph.Identity(x) })).AutoSharding(m).
		WithInputShardingSpecs(spec).WithOutputShardingSpecs(spec)
	refused(t, e, must(dtensor.NewTensor(spec, shards)), "virtual: the pure-Go engine rejects parameter arg0 of shape (Complex64)[4]; its programs compute with BFloat16, Bool, ")
}

func fours(b *Backend) []*tensors.Tensor {
	list := make([]*tensors.Tensor, 4)
	for i := range list {
		list[i] = must(tensors.FromRaw(b, compute.DeviceNum(i), shapes.Make(dtypes.Float32, 2, 3), raw(numbers(6))))
	}
	return list
}

func TestBuilderChecks(t *testing.T) {
	b := opened(t, 2)
	for _, c := range []struct {
		meshes  []compute.Mesh
		devices []compute.DeviceNum
		spec    *compute.ShardingSpec
		want    string
	}{
		{nil, nil, nil, "virtual: a sharded program needs a mesh"},
		{[]compute.Mesh{{Name: "m", AxesSizes: []int{4}, AxesNames: []string{"d"}}}, nil, nil, "virtual: a mesh of 4 devices does not fit the backend's 2"},
		{[]compute.Mesh{{Name: "m", AxesSizes: []int{2}}}, nil, nil, "virtual: mesh \"m\" has 0 axis names for 1 sizes"},
		{[]compute.Mesh{{Name: "m", AxesSizes: []int{2}, AxesNames: []string{"d"}}}, []compute.DeviceNum{0}, nil, "virtual: the device assignment names 1 devices, but the program has 2"},
		{[]compute.Mesh{{Name: "m", AxesSizes: []int{2}, AxesNames: []string{"d"}}}, []compute.DeviceNum{1, 1}, nil, "virtual: the device assignment names device 1 twice"},
		{[]compute.Mesh{{Name: "m", AxesSizes: []int{2}, AxesNames: []string{"d"}}}, []compute.DeviceNum{0, 2}, nil, "virtual: there is no device 2: the backend has 2"},
		{[]compute.Mesh{{Name: "m", AxesSizes: []int{2}, AxesNames: []string{"d"}}}, nil, &compute.ShardingSpec{Mesh: "other"}, "virtual: parameter x is sharded over mesh \"other\", which the program does not declare"},
		{[]compute.Mesh{{Name: "m", AxesSizes: []int{2}, AxesNames: []string{"d"}}}, nil, &compute.ShardingSpec{Mesh: "m", Axes: [][]string{{"e"}}}, "virtual: parameter x: sharding: axis \"e\" of P('e',) is not in Mesh('d': 2); use \"d\""},
	} {
		v := b.Builder("t")
		x := must(v.Main().Parameter("x", shapes.Make(dtypes.Float32, 4), c.spec))
		err := v.DistributedAutoSharding(c.meshes...)
		if err == nil && c.devices != nil {
			err = v.DeviceAssignment(c.devices...)
		}
		if err != nil {
			t.Errorf("refused before Compile: %v", err)
		}
		if err := v.Main().Return([]compute.Value{x}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Compile(); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestDevices(t *testing.T) {
	if _, err := New(0); err == nil || err.Error() != "virtual: a backend needs at least 1 device, got 0" {
		t.Errorf("got %v", err)
	}
	b := opened(t, 3)
	if b.NumDevices() != 3 || b.Name() != "virtual" || b.String() != "virtual" || b.DeviceDescription(2) != "virtual device 2 of 3" {
		t.Errorf("%d devices of %s (%s): %s", b.NumDevices(), b.Name(), b, b.DeviceDescription(2))
	}
	if !strings.HasPrefix(b.Description(), "3 virtual devices over: Go Portable") {
		t.Errorf("got %s", b.Description())
	}
	v, err := b.BufferFromFlatData(1, []float32{1, 2}, shapes.Make(dtypes.Float32, 2))
	if err != nil {
		t.Fatal(err)
	}
	w := must(v.CopyToDevice(2))
	if d := must(w.DeviceNum()); d != 2 || w.Backend() != compute.Backend(b) {
		t.Errorf("the copy is on device %d", d)
	}
	_, put := b.BufferFromFlatData(3, []float32{1}, shapes.Make(dtypes.Float32, 1))
	_, _, shared := b.NewSharedBuffer(-1, shapes.Make(dtypes.Float32, 1))
	_, copied := v.CopyToDevice(3)
	for i, c := range []struct {
		err  error
		want string
	}{
		{put, "virtual: there is no device 3: the backend has 3"},
		{shared, "virtual: there is no device -1: the backend has 3"},
		{copied, "virtual: there is no device 3: the backend has 3"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%d: got %v, want %s", i, c.err, c.want)
		}
	}
}

// A program of one device runs where its inputs are.
func TestOneDevice(t *testing.T) {
	b := opened(t, 3)
	e := must(graph.NewExec(b, func(x *graph.Node) *graph.Node { return graph.AddScalar(x, 1) }))
	for d := range compute.DeviceNum(3) {
		x := must(tensors.FromRaw(b, d, shapes.Make(dtypes.Float32, 2), raw([]float32{1, float32(d)})))
		out, _, err := e.CallWithGraphOnDevice(d, x)
		if err != nil {
			t.Fatal(err)
		}
		if on, got := must(out[0].Device()), tensors.MustCopyFlatData[float32](out[0]); on != d || got[0] != 2 || got[1] != float32(d)+1 {
			t.Errorf("device %d: got %v on %d", d, got, on)
		}
	}
}

// line is an endless distributed dataset of y = 3a - 2b + 0.5.
type line struct {
	on   *Backend
	spec *distributed.ShardingSpec
}

func (line) Name() string                        { return "line" }
func (line) Strategy() distributed.Strategy      { return distributed.AutoSharding }
func (line) Iter() iter.Seq2[train.Batch, error] { panic("RunSteps takes DistributedIter") }
func (l line) DeviceAssignment() (devices []compute.DeviceNum) {
	for i := range l.on.n {
		devices = append(devices, compute.DeviceNum(l.on.n-1-i))
	}
	return devices
}

func (l line) DistributedIter() iter.Seq2[train.DistributedBatch, error] {
	return func(yield func(train.DistributedBatch, error) bool) {
		for more := true; more; {
			x, y := numbers(64*2), make([]float32, 64)
			for i := range y {
				y[i] = 3*x[2*i] - 2*x[2*i+1] + 0.5
			}
			more = yield(train.DistributedBatch{
				Inputs: []*dtensor.Tensor{rows(l.on, l.spec, l.DeviceAssignment(), x, 2)},
				Labels: []*dtensor.Tensor{rows(l.on, l.spec, l.DeviceAssignment(), y, 1)},
			}, nil)
		}
	}
}

func TestTraining(t *testing.T) {
	b := opened(t, 8)
	m := must(distributed.NewDeviceMesh([]int{8}, []string{"data"}))
	ds := line{b, must(distributed.BuildSpec(m).S("data").R().Done())}
	trainer := train.NewTrainer(b, model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(s.In("out"), x, true, 1)
	}, loss.MeanSquaredError, optimizer.Adam().LearningRate(0.05).Done(), nil, nil)
	metrics, err := train.NewLoop(trainer).RunSteps(ds, 600)
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := metrics[0].Value().(float32); !ok || math.IsNaN(float64(l)) || l > 1e-2 {
		t.Errorf("after 600 steps the loss is %v", l)
	}
}
