package strategy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestReasons compares the reasons of chosen meshes of Llama 3 8B on two nodes.
func TestReasons(t *testing.T) {
	d := &strategy.Document{
		Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 128, Recomputation: strategy.Full},
		Cluster: strategy.Cluster{Device: "h100-80", Devices: 16}, Search: strategy.Search{Keep: 100, ZeRO: []int{0}, Axes: []strategy.AxisSizes{{Axis: "tensor", Sizes: []int{1, 2, 8, 16}}}},
	}
	reasons := map[string]string{}
	for _, c := range advise(t, d).Candidates {
		var names []string
		for _, a := range c.Mesh {
			names = append(names, fmt.Sprint(a.Name, " ", a.Size))
		}
		if name := strings.Join(names, ", "); reasons[name] == "" { // the best settings of a mesh come first
			reasons[name] = strings.Join(c.Reasons, "; ")
		}
	}
	for mesh, want := range map[string]string{
		"fsdp 16":          "the fastest that fits, bound by compute",
		"data 2, fsdp 8":   "as fast, but with 2 axes instead of 1",
		"data 8, tensor 2": "takes 1.08 times as long: 707 ms more of communication over tensor",
		"pipe 2, fsdp 8":   "takes 1.05 times as long: 398 ms more of computation in the slowest stage",
		"tensor 16":        "takes 2.14 times as long: 9.66 s more of communication over tensor, which crosses nodes",
		"pipe 16":          "takes 1.55 times as long: 3.76 s more of computation in the slowest stage", // the last of 16 stages has the head
		"data 16":          "needs 136 GB, but a device has 84.9 GB: 96.4 GB are states of the optimizer",
	} {
		if got := reasons[mesh]; got != want {
			t.Errorf("%s: %s\nwant %s", mesh, got, want)
		}
	}
}

// TestUndivided checks the reasons of a mesh with an axis fsdp that splits nothing:
// OPT-175B ran on 992 devices (Zhang et al., arXiv 2205.01068, section 2.4), which are 124
// × 8. Its library split padded arrays, and 124 divides no dimension of them.
func TestUndivided(t *testing.T) {
	opt := &strategy.Transformer{
		Layers: 96, Hidden: 12288, Heads: 96, FFN: 49152, Vocab: 50272, Sequence: 2048, Norm: "layer", Positions: "learned", Tied: new(true), Biases: new(true),
	}
	for fsdp, want := range map[int]string{
		124: "needs 350 GB, but a device has 85.2 GB: 262 GB are states of the optimizer; " +
			"fsdp 124 divides no dimension of the arrays of a layer, so every device holds them whole; use a divisor of the width",
		128: "the fastest that fits, bound by compute",
	} {
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Transformer: opt}, Training: strategy.Training{Batch: 8 * int64(fsdp), Recomputation: strategy.Full},
			Cluster: strategy.Cluster{Device: "a100-80", Devices: 8 * fsdp}, Search: fixed(map[string]int{"fsdp": fsdp, "tensor": 8}),
		})
		if got := strings.Join(r.Candidates[0].Reasons, "; "); got != want {
			t.Errorf("fsdp %d: %s\nwant %s", fsdp, got, want)
		}
	}
	const said = " A spec of JAX divides dimensions. With some of these meshes the replicas divide no dimension of arrays with up to 100 % of the weights: flatten and pad their states, or they stay whole and need more memory."
	for data, want := range map[int]bool{124: true, 128: false} {
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Transformer: opt}, Training: strategy.Training{Batch: 8 * int64(data)},
			Cluster: strategy.Cluster{Device: "a100-80", Devices: 8 * data}, Search: fixed(map[string]int{"data": data, "tensor": 8}),
		})
		i := slices.IndexFunc(r.Assumptions, func(a strategy.Assumption) bool { return a.Code == "zero" })
		if text := r.Assumptions[i].Text; strings.HasSuffix(text, said) != want || strings.Contains(text, "JAX") != want {
			t.Errorf("data %d: %s", data, text)
		}
	}
}

// TestOrderOfEqualTimes checks the order of candidates with times that differ by less than
// 1 %: the first one takes less time in the worst case.
func TestOrderOfEqualTimes(t *testing.T) {
	list := advise(t, &strategy.Document{
		Model:    strategy.Model{Preset: "llama3-8b"},
		Training: strategy.Training{Batch: 4096},
		Cluster:  strategy.Cluster{Device: "a100-80", Devices: 64},
	}).Candidates
	if list[1].Time.Step >= list[0].Time.Step || list[1].Time.High <= list[0].Time.High {
		t.Errorf("the best candidates take %+v and %+v", list[0].Time, list[1].Time)
	}
	if want := "as fast, but takes up to 308 s instead of 232 s in the worst case"; list[1].Reasons[0] != want {
		t.Errorf("the reason is %q, want %q", list[1].Reasons[0], want)
	}
}

// TestAsFast checks the reason of a candidate if its times print like the best candidate's
// times.
func TestAsFast(t *testing.T) {
	d := &strategy.Document{
		Model:    strategy.Model{Preset: "gpt3-175b"},
		Training: strategy.Training{Batch: 1536},
		Cluster:  strategy.Cluster{Device: "a100-80", Devices: 1024},
		Search:   fixed(map[string]int{"tensor": 8, "pipe": 16, "data": 8}),
	}
	got, want := advise(t, d).Candidates[1].Reasons[0], "as fast, but needs 35.3 GB instead of 20 GB"
	if got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
}

// TestEqualTimes checks the reasons of candidates that are as fast as the best one and
// differ in one setting.
func TestEqualTimes(t *testing.T) {
	model := strategy.Model{Parameters: 25_557_032, ActivationBytesPerExample: new(int64(22_200_000)), FLOPsPerExample: new(int64(4_089_000_000))}
	d := &strategy.Document{Model: model, Training: strategy.Training{Batch: 1024}, Cluster: strategy.Cluster{Device: "a100-40", Devices: 8}}
	d.Training.Precision.Weights = "float32"
	reasons := map[string]bool{}
	for _, c := range advise(t, d).Candidates {
		reasons[strings.Join(c.Reasons, "; ")] = true
	}
	for _, want := range []string{
		"as fast, but with 2 micro-batches instead of 1", "as fast, but with 2 axes instead of 1",
		"as fast; between equal times, data comes before fsdp, then tensor and pipe",
	} {
		if !reasons[want] {
			t.Errorf("the reasons %q lack %q", slices.Sorted(maps.Keys(reasons)), want)
		}
	}
}

// TestTight checks the warning about a best candidate with memory that fits by the formula,
// but not by its upper bound.
func TestTight(t *testing.T) {
	d := &strategy.Document{
		Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 128, Recomputation: strategy.None},
		Cluster: strategy.Cluster{Device: "h100-80", Devices: 8}, Search: fixed(map[string]int{"fsdp": 8}),
	}
	tight := func() string {
		for _, p := range advise(t, d).Problems {
			if p.Code == strategy.Tight {
				return string(p.Severity) + " " + p.Path + ": " + p.Message + "; " + p.Hint
			}
		}
		return ""
	}
	want := "warning /training/recomputation: the best candidate fits with fused kernels, but needs up to 111 GB without them, as JAX does without jax.checkpoint; " +
		"apply jax.checkpoint to each layer with the policy dots_with_no_batch_dims_saveable, which is recomputation \"dots\" and needs about 47.2 GB"
	if got := tight(); got != want {
		t.Errorf("the problem is %s\nwant %s", got, want)
	}
	for _, recomputation := range []string{strategy.Dots, strategy.Full, strategy.Auto} {
		d.Training.Recomputation = recomputation
		if got := tight(); got != "" {
			t.Errorf("with recomputation %s, the problem is %s", recomputation, got)
		}
	}
	d.Training.Recomputation = strategy.Full
	d.Cluster.MemoryBytes, d.Search = 29e9, fixed(map[string]int{"fsdp": 8})
	want = "warning /training/recomputation: the best candidate fits with fused kernels, but needs up to 39.9 GB without them; use more devices"
	if got := tight(); got != want {
		t.Errorf("with full recomputation, the problem is %s\nwant %s", got, want)
	}
}

// TestNothingFits checks what a report recommends if no candidate fits, and that
// a candidate fits after each change that it names.
func TestNothingFits(t *testing.T) {
	for _, c := range []struct {
		d       strategy.Document
		want    string
		changes []func(*strategy.Document)
	}{
		{
			strategy.Document{
				Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 128, MicroBatch: 16, Recomputation: strategy.None},
				Cluster: strategy.Cluster{Device: "h100-80", Devices: 8, MemoryBytes: 80e9}, Search: fixed(map[string]int{"data": 8}),
			},
			"no candidate fits: data 8 needs the least, 685 GB, but a device has 80 GB, of which 8 GB stay free; " +
				`each of these changes suffices: recomputation "full" and micro_batch 1; devices with 762 GB`,
			[]func(*strategy.Document){
				func(d *strategy.Document) { d.Training.Recomputation, d.Training.MicroBatch = strategy.Full, 1 },
				func(d *strategy.Document) { d.Cluster.MemoryBytes = 762e9 },
			},
		},
		{
			strategy.Document{
				Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 128, MicroBatch: 4, Recomputation: strategy.None, Attention: strategy.Plain},
				Cluster: strategy.Cluster{Device: "h100-80", Devices: 8, MemoryBytes: 80e9}, Search: strategy.Search{ZeRO: []int{0}, Axes: []strategy.AxisSizes{{Axis: "data", Sizes: []int{2, 4}}}},
			},
			"no candidate fits: data 2, tensor 4 needs the least, 210 GB, but a device has 80 GB, of which 8 GB stay free; " +
				`each of these changes suffices: recomputation "full"; 384 devices; devices with 234 GB`,
			[]func(*strategy.Document){
				func(d *strategy.Document) { d.Training.Recomputation = strategy.Full },
				func(d *strategy.Document) { d.Cluster.Devices = 384 },
				func(d *strategy.Document) { d.Cluster.MemoryBytes = 234e9 },
			},
		},
		{
			strategy.Document{
				Model: strategy.Model{Preset: "llama3-70b"}, Training: strategy.Training{Batch: 128}, Cluster: strategy.Cluster{Device: "h100-80", Devices: 16, MemoryBytes: 80e9},
			},
			"no candidate fits, but one is near: pipe 2, tensor 8 needs the least, 73 GB, but a device has 80 GB, of which 8 GB stay free; " +
				"each of these changes suffices: moments in bfloat16; 24 devices; devices with 81.1 GB",
			[]func(*strategy.Document){
				func(d *strategy.Document) { d.Training.Precision.Moments = "bfloat16" },
				func(d *strategy.Document) { d.Cluster.Devices = 24 },
				func(d *strategy.Document) { d.Cluster.MemoryBytes = 81_100_000_000 },
			},
		},
		{
			strategy.Document{Model: strategy.Model{Parameters: 1 << 50}, Training: strategy.Training{Batch: 1}, Cluster: strategy.Cluster{Devices: 1, MemoryBytes: 1 << 30}},
			"no candidate fits: one device needs the least, 18014 TB, but a device has 1.07 GB, of which 107 MB stay free; use devices with 20100 TB, or a smaller model",
			nil,
		},
		{
			strategy.Document{Model: strategy.Model{Parameters: 64e9}, Training: strategy.Training{Batch: 1}, Cluster: strategy.Cluster{Devices: 1, MemoryBytes: 80e9}},
			"no candidate fits: one device needs the least, 1.02 TB, but a device has 80 GB, of which 8 GB stay free; use devices with 1.14 TB, or a smaller model",
			[]func(*strategy.Document){func(d *strategy.Document) { d.Cluster.MemoryBytes = 1_140_000_000_000 }},
		},
		{
			strategy.Document{Model: strategy.Model{Parameters: 320e6}, Training: strategy.Training{Batch: 1}, Cluster: strategy.Cluster{Devices: 1, MemoryBytes: 1e9}},
			"no candidate fits: one device needs the least, 5.12 GB, but a device has 1 GB, of which 100 MB stay free; use devices with 5.69 GB, or a smaller model",
			[]func(*strategy.Document){func(d *strategy.Document) { d.Cluster.MemoryBytes = 5_690_000_000 }},
		},
	} {
		r := advise(t, &c.d)
		i := slices.IndexFunc(r.Problems, func(p problem.Problem) bool { return p.Code == strategy.NothingFits })
		if i < 0 {
			t.Errorf("%+v fits", c.d)
			continue
		}
		if got := r.Problems[i].Message + "; " + r.Problems[i].Hint; got != c.want {
			t.Errorf("the problem is %s\nwant %s", got, c.want)
		}
		for k, change := range c.changes {
			d := c.d
			change(&d)
			if advise(t, &d).Best < 0 {
				t.Errorf("no candidate fits after change %d: %s", k, c.want)
			}
		}
	}
}

// TestManyPruned checks that a report lists as many of the meshes that it leaves out as
// it may, and counts all of them.
func TestManyPruned(t *testing.T) {
	r := advise(t, &strategy.Document{
		Model: strategy.Model{Preset: "mixtral-8x7b"}, Training: strategy.Training{Batch: 1 << 20}, Cluster: strategy.Cluster{Device: "h100-80", Devices: 1 << 20},
		Search: strategy.Search{Pruned: true},
	})
	long := false
	for _, p := range r.Pruned {
		if want := min(p.Count, strategy.MaxKeep); p.Code != strategy.TooManyMeshes && int64(len(p.Meshes)) != want {
			t.Errorf("%s lists %d of %d meshes, want %d", p.Code, len(p.Meshes), p.Count, want)
		}
		long = long || p.Count > strategy.MaxKeep
	}
	if !long {
		t.Errorf("no rule leaves out more than %d meshes: %+v", strategy.MaxKeep, r.Pruned)
	}
}

// TestWidthsOfExperts checks that tensor must divide the width of layers without experts
// only if there are such layers.
func TestWidthsOfExperts(t *testing.T) {
	for every, want := range map[int]string{1: "", 2: strategy.TensorFFN} {
		m := small()
		m.FFN, m.Experts = 4098, &strategy.Experts{Count: 4, Active: 1, Every: every, FFN: 4096}
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 16}, Cluster: devices(4, 4), Search: fixed(map[string]int{"tensor": 4}),
		})
		code := ""
		for _, p := range r.Pruned {
			code += p.Code
		}
		if code != want {
			t.Errorf("experts in every layer of %d: the broken rules are %q, want %q", every, code, want)
		}
	}
}

// TestProcesses checks the number of processes that load data. Unless the document gives
// the number, it is one for each node, or one for four chips of a TPU. Four chips of TPU7x
// are eight devices.
func TestProcesses(t *testing.T) {
	for _, c := range []struct {
		device           string
		devices, perNode int
		asked, want      int
	}{{"h100-80", 16, 8, 0, 2}, {"tpu-v5p", 16, 16, 0, 4}, {"tpu-v7", 16, 16, 0, 2}, {"tpu-v5p", 4, 2, 0, 2}, {"tpu-v5p", 16, 16, 8, 8}} {
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 16}, Input: strategy.Input{Processes: c.asked},
			Cluster: strategy.Cluster{Device: c.device, Devices: c.devices, PerNode: c.perNode}, Search: fixed(map[string]int{"fsdp": c.devices}),
		})
		if r.Input.Processes != c.want || r.Layout.Mesh.Processes != c.want {
			t.Errorf("%+v: %d processes load data", c, r.Input.Processes)
		}
	}
}

// TestInput checks the layout of a mesh with every axis that the input has, and what the
// input needs.
func TestInput(t *testing.T) {
	d := &strategy.Document{
		Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 64, MicroBatch: 1}, Cluster: devices(16, 4),
		Search: fixed(map[string]int{"data": 2, "fsdp": 2, "context": 2, "tensor": 2}), Input: strategy.Input{RowsPerSecond: 100},
	}
	d.Model.Inputs = []layout.ArraySpec{{Name: "tokens", RowShape: []int{2048}, Type: dtype.Int32}, {Name: "label", Type: dtype.Int32}}
	r := advise(t, d)
	want := &layout.Document{
		Mesh:  layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}, {Name: "fsdp", Size: 2}, {Name: "context", Size: 2}, {Name: "tensor", Size: 2}}, Processes: 4},
		Batch: &layout.BatchSpec{Size: []int{64}},
		Arrays: []layout.ArraySpec{
			{Name: "tokens", RowShape: []int{2048}, Type: dtype.Int32, Spec: sharding.P([]string{"data", "fsdp"}, "context")},
			{Name: "label", Type: dtype.Int32, Spec: sharding.P([]string{"data", "fsdp"})},
		},
	}
	if !reflect.DeepEqual(r.Layout, want) {
		t.Errorf("the layout is %+v\nwant %+v", r.Layout, want)
	}
	in := *r.Input
	speed := r.Candidates[0].Time.ExamplesPerSecond
	if w := (strategy.InputNeeds{
		RowsPerStep: 64, RowsPerSecond: speed, BytesPerStep: 64 * 2049 * 4, ReadBytes: 64 * 2049 * 4, Processes: 4, ProcessRows: 16, ProcessBytes: 16 * 2049 * 4,
		HostBytes: 3 * (16*2048*4 + 64), Sharing: 1, Groups: 4, Available: 100, KeepsUp: 100_000 >= speed, Margin: (100_000_000 + speed/2) / speed,
	}); in != w {
		t.Errorf("the input needs %+v\nwant %+v", in, w)
	}
	d.Search = fixed(map[string]int{"data": 2, "tensor": 8})
	if in = *advise(t, d).Input; in.Sharing != 2 || in.Groups != 2 || in.ProcessRows != 32 || in.ReadBytes != 2*in.BytesPerStep {
		t.Errorf("the input of tensor 8 on nodes of 4 needs %+v", in)
	}
	d.Input.RowsPerSecond = 1
	r = advise(t, d)
	if p := r.Problems[0]; p.Code != strategy.InputSlow || p.Path != "/input/rows_per_second" || r.Input.KeepsUp {
		t.Errorf("the problems are %+v", r.Problems)
	}
}

// TestTree compares the memory of a tree with the memory of its shards. Specs decide what
// axes split. If no spec names fsdp, it splits the largest dimension that it divides.
func TestTree(t *testing.T) {
	arrays := []strategy.Array{
		{Name: "table", Shape: []int{1000, 96}, Element: "bfloat16"},
		{Name: "kernel", Shape: []int{96, 512}, Element: "float32", Spec: sharding.P(nil, "tensor")},
		{Name: "bias", Shape: []int{3}, Element: "float32"},
		{Name: "ids", Shape: []int{64}, Element: "int32"},
	}
	d := &strategy.Document{
		Model:    strategy.Model{Tree: arrays, ActivationBytesPerExample: new(int64(1000)), FLOPsPerExample: new(int64(1_000_000))},
		Training: strategy.Training{Batch: 16, MicroBatch: 2}, Cluster: devices(8, 8), Search: fixed(map[string]int{"fsdp": 4, "tensor": 2}),
	}
	c := advise(t, d).Candidates[0]
	// elements of a device: the table 250 × 96, the kernel 96 × 256 / 4, the bias whole, the ids 16
	const table, kernel, bias, ids = 1000 * 96 / 4, 96 * 512 / 8, 3, 16
	want := strategy.Memory{Weights: 2*table + 4*kernel + 4*bias + 4*ids, Gradients: 2*table + 4*kernel + 4*bias, Optimizer: 4*table + 8*kernel + 8*bias, Activations: 2000}
	if m := c.Memory; m.Weights != want.Weights || m.Gradients != want.Gradients || m.Optimizer != want.Optimizer || m.Activations != want.Activations {
		t.Errorf("memory is %+v\nwant %+v", m, want)
	}
	if c.Time != nil || c.Reasons[0] != "its time is not known, because the specs of a tree do not say what devices exchange over tensor" {
		t.Errorf("time %v, reasons %q", c.Time, c.Reasons)
	}
	d.Model.Tree[1].Spec, d.Search = sharding.P("expert"), fixed(map[string]int{"fsdp": 4, "expert": 2})
	unknown := problem.Problem{
		Severity: problem.Warning, Code: strategy.UnknownNumber, Path: "/model/tree",
		Message: "the specs of a tree do not say what devices exchange over expert, so candidates that need it have no time",
		Hint:    "describe the model as a transformer, or leave the axis out of the specs",
	}
	if r := advise(t, d); r.Candidates[0].Time != nil || !slices.ContainsFunc(r.Problems, func(p problem.Problem) bool { return p.String() == unknown.String() }) {
		t.Errorf("time %v, problems %+v", r.Candidates[0].Time, r.Problems)
	}
	d.Model.Tree[1].Spec, d.Search = sharding.P(nil, "tensor"), fixed(map[string]int{"fsdp": 4, "tensor": 2})
	d.Model.Tree[0].Spec = sharding.P("fsdp")
	c = advise(t, d).Candidates[0]
	if got, want := c.Memory.Weights, int64(2*table+4*kernel*4+4*bias+4*64); got != want {
		t.Errorf("if specs name fsdp, weights are %d bytes, want %d", got, want)
	}
	d.Model.Tree = []strategy.Array{{Name: "kernel", Shape: []int{256, 1024}, Element: "float32"}}
	d.Training.Optimizer, d.Search = "adafactor", fixed(map[string]int{"fsdp": 8})
	c = advise(t, d).Candidates[0]
	if got, want := c.Memory.Optimizer, int64(4*(256+1024/8+1)); got != want { // rows, columns, and an element without use
		t.Errorf("states of adafactor are %d bytes, want %d: fsdp splits the largest dimension", got, want)
	}
	d.Model.Tree[0].Shape = []int{1001}
	d.Model.Tree[0].Spec = sharding.P("fsdp")
	r := advise(t, d)
	if len(r.Candidates) != 0 || r.Pruned[0].Code != strategy.TreeSpec || r.Pruned[0].Count != 1 || r.Problems[0].Code != strategy.NoCandidate {
		t.Errorf("pruned %+v, problems %+v", r.Pruned, r.Problems)
	}
}

// TestOrderOfInputs checks that the order of sizes, axes and arrays changes nothing.
func TestOrderOfInputs(t *testing.T) {
	random.Rounds(t, 20, 500, func(t *testing.T, r *rand.Rand) {
		d := &strategy.Document{
			Training: strategy.Training{Batch: 64}, Cluster: devices(16, 8),
			Search: strategy.Search{ZeRO: []int{0, 1, 2}, Axes: []strategy.AxisSizes{{Axis: "tensor", Sizes: []int{1, 2, 4}}, {Axis: "fsdp", Sizes: []int{1, 4, 16}}, {Axis: "data", Sizes: []int{1, 2, 4, 8}}}},
		}
		for i := range 5 {
			d.Model.Tree = append(d.Model.Tree, strategy.Array{Name: fmt.Sprint(i), Shape: []int{8 * (1 + r.IntN(9)), 16}, Element: "bfloat16", Spec: random.One(r, nil, sharding.P("tensor"))})
		}
		want := advise(t, d)
		shuffle(r, d.Model.Tree)
		shuffle(r, d.Search.Axes)
		shuffle(r, d.Search.ZeRO)
		for i := range d.Search.Axes {
			shuffle(r, d.Search.Axes[i].Sizes)
		}
		if got := advise(t, d); !reflect.DeepEqual(got, want) {
			t.Errorf("another order gives\n%+v\ninstead of\n%+v", got, want)
		}
	})
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
}

// TestAssumptions checks that a report lists what it depends on, each once, in at most four
// sentences.
func TestAssumptions(t *testing.T) {
	capital, end := regexp.MustCompile(`^[A-Z0-9]`), regexp.MustCompile(`\.( [A-Z]|$)`)
	codes := func(d *strategy.Document) []string {
		var list []string
		for _, a := range advise(t, d).Assumptions {
			if n := len(end.FindAllString(a.Text, -1)); slices.Contains(list, a.Code) || !capital.MatchString(a.Text) || n < 1 || n > 4 || !strings.HasSuffix(a.Text, ".") {
				t.Errorf("assumption %+v", a)
			}
			list = append(list, a.Code)
		}
		return list
	}
	d := &strategy.Document{Model: strategy.Model{Parameters: 1000}, Training: strategy.Training{Batch: 8}, Cluster: strategy.Cluster{Devices: 1}}
	if got, want := codes(d), []string{"precision", "flat"}; !slices.Equal(got, want) {
		t.Errorf("one device of unknown kind assumes %q, want %q", got, want)
	}
	m := small()
	m.Experts = &strategy.Experts{Count: 8, Active: 2}
	m.Vocab, m.Layers, m.Tied, m.Sequence = 32767, 6, new(true), 65536
	d = &strategy.Document{Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 64}, Cluster: strategy.Cluster{Device: "h100-80", Devices: 64}, Search: strategy.Search{Keep: 4096}}
	want := []string{
		"precision", "margin", "activations", "flash", "sequence-parallel", "scores", "vocabulary", "routing", "heads", "stages", "tied", "fsdp", "zero", "context",
		"recomputation", "efficiency", "overlap", "gradients", "links", "latency", "memory-traffic", "bubble", "processes",
	}
	if got := codes(d); !slices.Equal(got, want) {
		t.Errorf("a mixture on 64 devices assumes %q\nwant %q", got, want)
	}
}

// TestSliceAssumption checks what the report says about links of TPUs that times leave
// out.
func TestSliceAssumption(t *testing.T) {
	const straight = "A slice is a straight torus; Google also offers twisted ones, such as 4×4×8, with a faster all-to-all."
	for device, want := range map[string]string{
		"h100-80": "", "tpu-v5e": "", "tpu-v5p": straight, "tpu-v7": straight + " The faster link between the two devices of a chip is left out.",
	} {
		got := ""
		for _, a := range advise(t, &strategy.Document{
			Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 128}, Cluster: strategy.Cluster{Device: device, Devices: 16},
		}).Assumptions {
			if a.Code == "slices" {
				got = a.Text
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", device, got, want)
		}
	}
}
