package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// TestRules checks the message of every rule that a mesh may break. TestManyMeshes checks
// the message about too many meshes.
func TestRules(t *testing.T) {
	mixture := func() *strategy.Document {
		m := small()
		m.Heads, m.KVHeads, m.Hidden, m.FFN = 18, 6, 1152, 4095
		m.Experts = &strategy.Experts{Count: 4, Active: 2, Every: 2, FFN: 2048}
		return &strategy.Document{Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 32}, Cluster: devices(32*9, 2)}
	}
	interleaved := func() *strategy.Document {
		m := small()
		m.Layers = 6
		return &strategy.Document{Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 2, Chunks: 2}, Cluster: devices(6, 6)}
	}
	tree := &strategy.Document{
		Model:    strategy.Model{Tree: []strategy.Array{{Name: "x", Shape: []int{1001}, Element: "float32", Spec: sharding.P("tensor")}}},
		Training: strategy.Training{Batch: 8}, Cluster: devices(8, 8),
	}
	asked := mixture()
	asked.Search.Axes = []strategy.AxisSizes{{Axis: "context", Sizes: []int{1, 9}}}
	for _, c := range []struct {
		d    *strategy.Document
		want map[string]string
	}{
		{mixture(), map[string]string{
			strategy.TensorHeads:   "tensor must divide the 18 heads",
			strategy.TensorKVHeads: "tensor must divide the 6 key and value heads, or be a multiple of them",
			strategy.TensorFFN:     "tensor must divide the width of the feed-forward block, 4095 and 2048",
			strategy.ExpertCount:   "expert must divide the 4 experts",
			strategy.ContextShort:  `context is tried for sequences of at least 32,768 tokens, but this model has 2,048; to try it, write "search": {"axes": {"context": [1, 2]}}`,
			strategy.PipeLayers:    "each stage of a pipeline needs a layer, but the model has 4",
			strategy.Batch:         "data × fsdp × expert must divide the batch of 32 examples",
		}},
		{asked, map[string]string{strategy.ContextSequence: "context must divide the sequence of 2048"}},
		{&strategy.Document{Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 32, MicroBatch: 4}, Cluster: devices(32, 2)}, map[string]string{
			strategy.MicroBatch: "micro-batches of 4 must divide the examples of a replica",
			strategy.TensorNode: `tensor stays inside a node of 2 devices, because it communicates in every layer; for more, write "search": {"axes": {"tensor": [1, 4]}}`,
		}},
		{interleaved(), map[string]string{
			strategy.PipeChunks:     "the interleaved schedule needs stages × 2 chunks to divide 6, 7 or 8: the 6 layers, where the first chunk, the last or both may have a layer less than the others",
			strategy.MicroBatchPipe: "the interleaved schedule needs a number of micro-batches that is a multiple of the stages",
		}},
		{tree, map[string]string{strategy.TreeSpec: "the axes in specs of the tree must divide the dimensions of its arrays"}},
	} {
		r := advise(t, c.d)
		for code, want := range c.want {
			i := slices.IndexFunc(r.Pruned, func(p strategy.Pruned) bool { return p.Code == code })
			if i < 0 {
				t.Errorf("no mesh breaks the rule %s: %+v", code, r.Pruned)
			} else if got := r.Pruned[i].Message; got != want {
				t.Errorf("%s: %s\nwant %s", code, got, want)
			}
		}
	}
}

// TestProblems checks problems about missing numbers, and about rules that exclude every
// mesh.
func TestProblems(t *testing.T) {
	training := strategy.Training{Batch: 7}
	parameters := strategy.Model{Parameters: 1000, FLOPsPerExample: new(int64(1000)), ActivationBytesPerExample: new(int64(0))}
	for _, c := range []struct {
		d    *strategy.Document
		code problem.Code
		want string
	}{
		{
			&strategy.Document{Model: parameters, Training: training, Cluster: devices(8, 8), Search: fixed(map[string]int{"data": 8})}, strategy.NoCandidate,
			"error /search: every mesh of 8 devices breaks a rule; data × fsdp × expert must divide the batch of 7 examples",
		},
		{
			&strategy.Document{Model: parameters, Training: training, Cluster: strategy.Cluster{Devices: 1}}, strategy.UnknownNumber,
			"warning /cluster/flops_per_second: the number of floating-point operations per second in bf16 is missing, so candidates that need it have no time; " +
				"give flops_per_second, or name a device that the planner knows",
		},
		{
			&strategy.Document{Model: parameters, Training: training, Cluster: strategy.Cluster{Device: "v100-32", Devices: 1}}, strategy.UnknownNumber,
			"warning /cluster/flops_per_second: the number of floating-point operations per second in bf16 is missing, so candidates that need it have no time; " +
				"compute in float16, with precision.compute, or give flops_per_second",
		},
		{
			&strategy.Document{Model: strategy.Model{Parameters: 1000}, Training: training, Cluster: devices(1, 1)}, strategy.UnknownNumber,
			"warning /model/flops_per_example: the number of floating-point operations of an example is missing, so candidates that need it have no time; give flops_per_example",
		},
		{
			&strategy.Document{Model: strategy.Model{Parameters: 1000}, Training: training, Cluster: devices(1, 1)}, strategy.ActivationsUnknown,
			"warning /model/activation_bytes_per_example: the activations of an example are not known, so the memory is without them; " +
				"give activation_bytes_per_example, or describe the model as a transformer",
		},
	} {
		r := advise(t, c.d)
		i := slices.IndexFunc(r.Problems, func(p problem.Problem) bool { return p.Code == c.code })
		if i < 0 {
			t.Errorf("there is no problem %s: %+v", c.code, r.Problems)
			continue
		}
		p := r.Problems[i]
		if got := string(p.Severity) + " " + p.Path + ": " + p.Message + "; " + p.Hint; got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestMisfit checks the reasons of candidates that do not fit: one needs the margin, and
// one fits with the least activations.
func TestMisfit(t *testing.T) {
	for _, c := range []struct {
		d    *strategy.Document
		want string
	}{
		{
			&strategy.Document{Model: strategy.Model{Parameters: 1e9}, Training: strategy.Training{Batch: 1}, Cluster: strategy.Cluster{Devices: 1, MemoryBytes: 17e9}},
			"near: needs 16 GB of 17 GB, of which 1.7 GB stay free: 12 GB are states of the optimizer",
		},
		{
			&strategy.Document{
				Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 8, Recomputation: strategy.None},
				Cluster: strategy.Cluster{Device: "h100-80", Devices: 8, MemoryBytes: 55e9}, Search: fixed(map[string]int{"fsdp": 8}),
			},
			"needs 59 GB, but a device has 55 GB: 40.9 GB are activations; may fit: needs 47.2 GB if layers keep only the results of matrix products",
		},
	} {
		if got := strings.Join(advise(t, c.d).Candidates[0].Reasons, "; "); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
