package memory_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

func on(t *testing.T, axes ...mesh.Axis) *mesh.Mesh {
	t.Helper()
	m, err := mesh.Uniform(axes, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func problems(u *memory.Usage) (list []string) {
	for _, p := range u.Problems {
		list = append(list, fmt.Sprintf("%s %s %s: %s; %s %v", p.Severity, p.Code, p.Path, p.Message, p.Hint, p.Facts))
	}
	return list
}

func check(t *testing.T, u *memory.Usage, want ...string) {
	t.Helper()
	if got := problems(u); !slices.Equal(got, want) {
		t.Errorf("problems\n got %q\nwant %q", got, want)
	}
}

var grid = []mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}

// The states and the gradient of a parameter are partitioned like it. A state with sums
// over one dimension is partitioned like the other dimensions.
func TestTraining(t *testing.T) {
	u := memory.Measure(&memory.Tree{
		Mesh: on(t, grid...), Optimizer: memory.Adafactor, Moments: memory.Float32, Master: memory.Float32, Gradients: memory.Float32,
		Parameters: []memory.Array{
			{Name: "w", Shape: []int{256, 512}, Element: memory.BFloat16, Spec: sharding.P("data", "model")},
			{Name: "part", Shape: []int{256, 512}, Element: memory.BFloat16, Shard: []int{64, 512}},
			{Name: "step", Shape: []int{}, Element: memory.Int32},
		},
		Batch: []memory.Array{{Name: "x", Shape: []int{8, 3}, Element: memory.Int8, Spec: sharding.P("data")}},
	})
	check(t, u)
	want := map[string][]int{
		"master/w": {64, 256}, "v_row/w": {64}, "v_col/w": {256}, "v/w": {1},
		"master/part": {64, 512}, "v_row/part": {64}, "v_col/part": {512}, "v/part": {1}, "count": {},
	}
	for _, r := range u.States {
		if !slices.Equal(r.Part, want[r.Name]) || r.Element != memory.Float32 && r.Name != "count" {
			t.Errorf("%s: part %v of %v, want %v", r.Name, r.Part, r.Element, want[r.Name])
		}
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no states %v", want)
	}
	w, part := u.Parameters[0], u.Parameters[1]
	if w.Bytes != 2*64*256 || w.Gradient != 4*64*256 || w.States != 4*(64*256+64+256+1) || w.Copies != 1 || part.Copies != 2 {
		t.Errorf("got %+v and %+v", w, part)
	}
	stored := 2*64*256 + 2*64*512 + 4 + 4*(64*256+64+256+1+64*512+64+512+1) + 4 + 2*3
	if u.Totals.Stored != int64(stored) || u.Totals.Gradients != 4*(64*256+64*512) || u.Totals.Peak != nil {
		t.Errorf("got %+v, want %d bytes stored", u.Totals, stored)
	}
}

// Without an optimizer and activations the tree is not trained, so it has no gradients.
func TestInference(t *testing.T) {
	w := memory.Array{Name: "w", Shape: []int{8}, Element: memory.Float32}
	u := memory.Measure(&memory.Tree{Mesh: on(t), Parameters: []memory.Array{w}})
	if got := u.Totals; got.Gradients != 0 || got.Stored != 32 {
		t.Errorf("got %+v", got)
	}
	if got := memory.Measure(&memory.Tree{Mesh: on(t), Parameters: []memory.Array{w}, Optimizer: memory.SGD}).Totals; got.Gradients != 32 || got.Stored != 32 {
		t.Errorf("with SGD: got %+v", got)
	}
	step := memory.Measure(&memory.Tree{Mesh: on(t), Parameters: []memory.Array{w}, Activations: &memory.Interval{Low: 1, High: 2}}).Totals
	if step.Gradients != 32 || *step.Peak != (memory.Interval{Low: 33, High: 66}) {
		t.Errorf("with activations: got %+v", step)
	}
}

func TestReplicated(t *testing.T) {
	const mebi = 1 << 20
	w := func(name string, rows, columns int, spec ...any) memory.Array {
		return memory.Array{Name: name, Shape: []int{rows, columns}, Element: memory.Int8, Spec: sharding.P(spec...)}
	}
	model := w("model", 1024, 4096, nil, "model")
	for _, c := range []struct {
		name   string
		arrays []memory.Array
		want   []string
	}{
		{"data parallel", []memory.Array{w("a", 1024, 8192), w("b", 1024, 8192)}, nil},
		{"another array uses the axis", []memory.Array{model, w("a/b", 2048, 1024)}, []string{
			`warning replicated /arrays/a~1b/spec: array "a/b" has 2 copies along axis "model", which partitions other arrays; write P('model',) to save 1 MiB of every device, unless the copies are meant [{bytes 1048576} {devices 2}]`}},
		{"too small", []memory.Array{model, w("a", 2046, 1024)}, nil},
		{"no dimension divides", []memory.Array{model, w("a", 2049, 1025)}, nil},
		{"two axes", []memory.Array{w("m", 1024, 8192, "data", "model"), w("a", 2048, 1023)}, []string{
			`warning replicated /arrays/a/spec: array "a" has 8 copies along axes "data", "model", which partition other arrays; write P(('data', 'model'),) to save 1.75 MiB of every device, unless the copies are meant [{bytes 1833216} {devices 8}]`}},
		{"only the second axis divides", []memory.Array{w("m", 1024, 8192, "data", "model"), w("a", 2049, 1026)}, []string{
			`warning replicated /arrays/a/spec: array "a" has 2 copies along axis "model", which partitions other arrays; write P(None, 'model') to save 1 MiB of every device, unless the copies are meant [{bytes 1051137} {devices 2}]`}},
		{"on the host", []memory.Array{model, {Name: "a", Shape: []int{2048, 1024}, Element: memory.Int8, Host: "pinned_host"}}, nil},
		{"beside another axis", []memory.Array{model, w("a", 4096, 4096, "data")}, []string{
			`warning replicated /arrays/a/spec: array "a" has 2 copies along axis "model", which partitions other arrays; write P('data', 'model') to save 2 MiB of every device, unless the copies are meant [{bytes 2097152} {devices 2}]`,
			`warning replicated /arrays/model/spec: array "model" has 4 copies along axis "data", which partitions other arrays; write P(None, ('model', 'data')) to save 1.5 MiB of every device, unless the copies are meant [{bytes 1572864} {devices 4}]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, memory.Measure(&memory.Tree{Mesh: on(t, grid...), Parameters: c.arrays}), c.want...)
		})
	}
	share := []memory.Array{w("m", 102400, 4096, nil, "model"), w("a", 2048, 1024)}
	check(t, memory.Measure(&memory.Tree{Mesh: on(t, grid...), Parameters: share})) // saves less than 1 %
	states := &memory.Tree{Mesh: on(t, grid...), Parameters: []memory.Array{model}, States: []memory.Array{w("mu", 1024, 4096)}}
	check(t, memory.Measure(states), `warning replicated /optimizer/mu/spec: array "mu" has 2 copies along axis "model", which partitions other arrays; write P(None, 'model') to save 2 MiB of every device, unless the copies are meant [{bytes 2097152} {devices 2}]`)
	states.Parameters[0].Name, states.States[0].Name = "a/w", "0/mu/a/w"
	states.Parameters[0].Spec, states.States[0].Spec = sharding.P("model", "data"), sharding.P("data")
	check(t, memory.Measure(states)) // saves less than 1 MiB
	states.States[0].Spec = sharding.P(nil, "data")
	states.States[0].Element = memory.Float32
	check(t, memory.Measure(states), `warning replicated /optimizer/0~1mu~1a~1w/spec: array "0/mu/a/w" has 2 copies along axis "model", which partitions other arrays; write P('model', 'data') to save 2 MiB of every device, unless the copies are meant [{bytes 2097152} {devices 2}]`)
	batch := &memory.Tree{Mesh: on(t, grid...), Batch: []memory.Array{w("x", 64, 8, "data"), w("y", 4, mebi)}}
	check(t, memory.Measure(batch), `warning replicated /batch/y/spec: array "y" has 4 copies along axis "data", which partitions other arrays; write P(None, 'data') to save 3 MiB of every device, unless the copies are meant [{bytes 3145728} {devices 4}]`)
}

// A warning names as many bytes as its spec saves.
func TestReplicatedSaves(t *testing.T) {
	tree := func(spec sharding.PartitionSpec) *memory.Tree {
		return &memory.Tree{Mesh: on(t, grid...), Optimizer: memory.AdamW, Master: memory.Float32, Parameters: []memory.Array{
			{Name: "in", Shape: []int{2048, 4096}, Element: memory.BFloat16, Spec: sharding.P(nil, "model")},
			{Name: "out", Shape: []int{4096, 2048}, Element: memory.BFloat16, Spec: spec},
		}}
	}
	before, after := memory.Measure(tree(nil)), memory.Measure(tree(sharding.P("model")))
	check(t, after)
	saved := before.Totals.Stored + before.Totals.Gradients - after.Totals.Stored - after.Totals.Gradients
	if len(before.Problems) != 1 || before.Problems[0].Facts[0] != (problem.Fact{Name: "bytes", Value: saved}) {
		t.Errorf("got %q, but the spec saves %d bytes", problems(before), saved)
	}
}

func TestCapacity(t *testing.T) {
	for _, c := range []struct {
		capacity    int64
		activations *memory.Interval
		fits, known bool
		want        []string
	}{
		{0, nil, false, false, nil},
		{4095, nil, false, true, []string{"error device-capacity /capacity_bytes: a step needs at least 4,096 bytes of a device, which has 4,095 bytes; partition the arrays over more axes, or use more devices [{bytes 4096} {capacity 4095}]"}},
		{4096, nil, true, false, nil},
		{8192, &memory.Interval{Low: 1024, High: 4096}, true, true, nil},
		{8191, &memory.Interval{Low: 1024, High: 4096}, true, false, []string{"warning device-capacity /capacity_bytes: a step needs up to 8,192 bytes of a device, which has 8,191 bytes; the compiler decides: compile the step, or use a smaller batch [{bytes 8192} {capacity 8191}]"}},
		{5119, &memory.Interval{Low: 1024, High: 4096}, false, true, []string{"error device-capacity /capacity_bytes: a step needs at least 5,120 bytes of a device, which has 5,119 bytes; partition the arrays over more axes, or use more devices [{bytes 5120} {capacity 5119}]"}},
	} {
		u := memory.Measure(&memory.Tree{Mesh: on(t), Capacity: c.capacity, Activations: c.activations, Parameters: []memory.Array{{Name: "w", Shape: []int{1024}, Element: memory.Int32}}})
		if fits, known := u.Fits(); fits != c.fits || known != c.known {
			t.Errorf("%d bytes: Fits is %v, %v", c.capacity, fits, known)
		}
		check(t, u, c.want...)
	}
}

// The sums of a device do not contain arrays in the memory of the host and their states.
func TestHost(t *testing.T) {
	u := memory.Measure(&memory.Tree{Mesh: on(t), Optimizer: memory.Lion, Parameters: []memory.Array{
		{Name: "w", Shape: []int{8}, Element: memory.Float32, Host: "pinned_host"}, {Name: "v", Shape: []int{2}, Element: memory.Float32},
	}})
	if got := u.Totals; got.Parameters != 8 || got.States != 8+4 || got.Host != 32+32 {
		t.Errorf("got %+v", got)
	}
}

// If the spec of an array does not fit, whether the tree fits is not known.
func TestIncomplete(t *testing.T) {
	u := memory.Measure(&memory.Tree{Mesh: on(t, grid...), Capacity: 8192, Activations: &memory.Interval{}, Parameters: []memory.Array{
		{Name: "w", Shape: []int{1023}, Element: memory.Int8, Spec: sharding.P("data")},
	}})
	if fits, known := u.Fits(); known || u.Complete() {
		t.Errorf("Fits is %v, %v, Complete is %v", fits, known, u.Complete())
	}
}

// Replicated lists the axes along which several devices hold the same part.
func TestReplicatedAxes(t *testing.T) {
	axes := []mesh.Axis{{Name: "data", Size: 4}, {Name: "one", Size: 1}, {Name: "model", Size: 2}}
	u := memory.Measure(&memory.Tree{Mesh: on(t, axes...), Parameters: []memory.Array{
		{Name: "w", Shape: []int{8}, Element: memory.Int8}, {Name: "v", Shape: []int{8}, Element: memory.Int8, Spec: sharding.P("data")},
	}})
	if w, v := u.Parameters[0].Replicated, u.Parameters[1].Replicated; !slices.Equal(w, []string{"data", "model"}) || !slices.Equal(v, []string{"model"}) {
		t.Errorf("w is replicated along %q, v along %q", w, v)
	}
}

// A size beyond the limits is an error, and no sum wraps around.
func TestTooLarge(t *testing.T) {
	const most = 1 << 53
	for _, shape := range [][]int{{most + 1}, {most, most, most}, {math.MaxInt, math.MaxInt}} {
		w := memory.Array{Name: "w", Shape: shape, Element: memory.Int8}
		u := memory.Measure(&memory.Tree{Mesh: on(t), Optimizer: memory.Adafactor, Parameters: []memory.Array{w, w}})
		check(t, u, "error too-large /arrays: the arrays take more than 2^53 bytes of a device; make them smaller []")
		if err := u.Err(); status.CodeOf(err) != status.InvalidArgument || err.Error() != "memory: the arrays take more than 2^53 bytes of a device; make them smaller" {
			t.Errorf("Err is %v", err)
		}
		if u.Totals.Stored < most {
			t.Errorf("%v takes %d bytes", shape, u.Totals.Stored)
		}
	}
}

// The numbers of XLA's CPU backend; tests/python/plan/test_usage.py compares all types.
func TestPackedElements(t *testing.T) {
	for name, want := range map[string][]int64{
		"int4": {0, 1, 1, 2, 2}, "uint2": {0, 1, 1, 1, 1, 2}, "int1": {0, 1, 2}, "bool": {0, 1, 2},
		"float4_e2m1fn": {0, 1, 1, 2}, "complex128": {0, 16, 32}, "key<rbg>": {0, 16},
	} {
		e, err := memory.ParseElement(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, bytes := range want {
			if got := e.Bytes(int64(n)); got != bytes {
				t.Errorf("%d of %s: %d bytes, want %d", n, name, got, bytes)
			}
		}
	}
}

// The time for an array must not grow with the mesh.
func BenchmarkMeasure(b *testing.B) {
	m, err := mesh.Uniform([]mesh.Axis{{Name: "fsdp", Size: 1 << 16}, {Name: "model", Size: 16}}, 1)
	if err != nil {
		b.Fatal(err)
	}
	tree := &memory.Tree{Mesh: m, Optimizer: memory.AdamW}
	for i := range 1000 {
		tree.Parameters = append(tree.Parameters, memory.Array{Name: fmt.Sprint(i), Shape: []int{1 << 16, 1 << 14}, Element: memory.BFloat16, Spec: sharding.P("fsdp")})
	}
	for b.Loop() {
		memory.Measure(tree)
	}
}
