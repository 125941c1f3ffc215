package strategy_test

import (
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestErrors changes one field of a good document, and compares the whole error.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		path   string
		want   string
		change func(d *strategy.Document)
	}{
		{"/model", `there is no model; name a "preset", or give a "transformer", "parameters" or a "tree"`, func(d *strategy.Document) { d.Model = strategy.Model{} }},
		{"/model", `the model has 2 forms: "transformer", "parameters"; keep one of them`, func(d *strategy.Document) { d.Model.Parameters = 7 }},
		{"/model/parameters", "the model has -1 parameters, but must have from 1 to 2^53", func(d *strategy.Document) { d.Model = strategy.Model{Parameters: -1} }},
		{"/model/flops_per_example", "the number follows from the transformer; leave it out", func(d *strategy.Document) { d.Model.FLOPsPerExample = new(int64(1)) }},
		{"/model/tree", "the tree has no array; name at least one array", func(d *strategy.Document) { d.Model = strategy.Model{Tree: []strategy.Array{}} }},
		{"/model/tree/w/dtype", `"float33" is not an element type of JAX; did you mean "float32"?`, tree(strategy.Array{Name: "w", Shape: []int{4}, Element: "float33"})},
		{"/model/tree/w/dtype", `"bf16" is not an element type of JAX; did you mean "bfloat16"?`, tree(strategy.Array{Name: "w", Shape: []int{4}, Element: "bf16"})},
		{"/model/tree/w/spec", "the spec has 2 entries, but the array has rank 1; remove entries", tree(strategy.Array{Name: "w", Shape: []int{4}, Element: "float32", Spec: sharding.P(nil, "fsdp")})},
		{"/model/tree/w/spec/0", `"model" is not an axis of the planner; use one of "fsdp", "expert", "tensor"`, tree(strategy.Array{Name: "w", Shape: []int{4}, Element: "float32", Spec: sharding.P("model")})},
		{"/model/tree/w/spec/0", `axis "data" splits the layers, the batch or the sequence, but no array of the model; use "fsdp", "expert" or "tensor"`, tree(strategy.Array{Name: "w", Shape: []int{4}, Element: "float32", Spec: sharding.P("data")})},
		{"/model/tree/w/spec/1", `axis "fsdp" occurs twice in the spec; an axis can split one dimension only`, tree(strategy.Array{Name: "w", Shape: []int{4, 4}, Element: "float32", Spec: sharding.P("fsdp", "fsdp")})},
		{"/model/tree/w/shape", "the tree has more than 2^53 elements", tree(strategy.Array{Name: "w", Shape: []int{1 << 30, 1 << 30}, Element: "float32"})},
		{"/model/inputs/x/shape", `the array has no batch dimension; begin its shape with "B"`, inputs(layout.ArraySpec{Name: "x", Static: true, Type: dtype.Int32})},
		{"/model/inputs/x/dtype", "there is no element type", inputs(layout.ArraySpec{Name: "x"})},
		{"/model/transformer/heads", "hidden 1024 does not divide by 15 heads: 1024 % 15 = 4; give head_dim if a head is not hidden / heads wide", func(d *strategy.Document) { d.Model.Transformer.Heads = 15 }},
		{"/training", `there is no global batch; give "batch", a number of examples, or "tokens"`, func(d *strategy.Document) { d.Training.Batch = 0 }},
		{"/training/tokens", "the global batch is given in examples and in tokens; keep one of them", func(d *strategy.Document) { d.Training.Tokens = 2048 }},
		{"/training/tokens", "5000 tokens are not a whole number of sequences of 2048: 5000 % 2048 = 904; use 4096 or 6144", func(d *strategy.Document) { d.Training.Batch, d.Training.Tokens = 0, 5000 }},
		{"/training/recomputation", `"some" is not known; use one of "auto", "none", "dots", "selective", "full"`, func(d *strategy.Document) { d.Training.Recomputation = "some" }},
		{"/training/recomputation", "only a transformer has layers to compute again; leave it out, and give the activation_bytes_per_example that remain", func(d *strategy.Document) {
			d.Model, d.Training.Recomputation = strategy.Model{Parameters: 8}, strategy.Full
		}},
		{"/training/precision/weights", "every array of a tree has a type of its own; leave it out, and give the arrays another dtype", func(d *strategy.Document) {
			d.Model = strategy.Model{Tree: []strategy.Array{{Name: "w", Shape: []int{8}, Element: "float32"}}}
			d.Training.Precision.Weights = "bfloat16"
		}},
		{"/training/precision/compute", `the planner knows no device that multiplies matrices of int4; use a type such as "bfloat16", "float32" or "float8_e4m3fn"`, func(d *strategy.Document) { d.Training.Precision.Compute = "int4" }},
		{"/training/precision/weights", `complex64 is a type of no operation that the planner counts; use a type such as "bfloat16" or "float32"`, func(d *strategy.Document) { d.Training.Precision.Weights = "complex64" }},
		{"/training/schedule", `there is no schedule "2f2b"; use one of "auto", "gpipe", "1f1b", "interleaved", "zero-bubble"`, func(d *strategy.Document) { d.Training.Schedule = "2f2b" }},
		{"/training/chunks", `schedule "1f1b" has 1 chunk of layers per stage, but there are 3; leave chunks out, or use schedule "interleaved"`, func(d *strategy.Document) { d.Training.Schedule, d.Training.Chunks = "1f1b", 3 }},
		{"/training/precision/moments", `int32 cannot store moments; use a type such as "bfloat16", or "int8" if they are quantized`, func(d *strategy.Document) { d.Training.Precision.Moments = "int32" }},
		{"/training/precision/weights", `int8 has no gradients; use a type such as "bfloat16" or "float32"`, func(d *strategy.Document) { d.Training.Precision.Weights = "int8" }},
		{"/training/efficiency", "the efficiency is from 0.6 to 0.4, but must be an interval between 0.001 and 1; give [least, most], such as [0.4, 0.6]", func(d *strategy.Document) { d.Training.Efficiency = [2]int{600, 400} }},
		{"/training/link_efficiency", "the efficiency of links is from 0 to 0.5, but must be an interval between 0.001 and 1; give [least, most], such as [0.4, 0.6]", func(d *strategy.Document) { d.Training.LinkEfficiency = [2]int{0, 500} }},
		{"/training/link_efficiency", "the efficiency of links is from 0.5 to 2, but must be an interval between 0.001 and 1; give [least, most], such as [0.4, 0.6]", func(d *strategy.Document) { d.Training.LinkEfficiency = [2]int{500, 2000} }},
		{"/cluster/devices", "there are 0 devices, but must be from 1 to 1048576", func(d *strategy.Document) { d.Cluster.Devices = 0 }},
		{"/cluster/memory_bytes", "the number is 80, but no device has less than 1 MB; write bytes: 80 GB are 80000000000", func(d *strategy.Document) { d.Cluster.MemoryBytes = 80 }},
		{"/cluster/devices", "10 devices do not fill nodes of 4: 10 % 4 = 2; use 8 or 12 devices, or another per_node", func(d *strategy.Document) { d.Cluster.Devices, d.Cluster.PerNode = 10, 4 }},
		{"/cluster/device", `there is no device kind "h100"; use "h100-80", "h100-pcie", or give the numbers of the device`, func(d *strategy.Document) { d.Cluster.Device = "h100" }},
		{"/search/axes/tensor", `axis "tensor" has size 3, which does not divide 8 devices: 8 % 3 = 2; use 2 or 4`, func(d *strategy.Document) { d.Search.Axes = []strategy.AxisSizes{{Axis: "tensor", Sizes: []int{3}}} }},
		{"/search/axes/expert", `axis "expert" cannot split this model, so its size is 1; only a transformer with experts has this axis`, func(d *strategy.Document) { d.Search.Axes = []strategy.AxisSizes{{Axis: "expert", Sizes: []int{2}}} }},
		{"/search/zero/1", `ZeRO stage 3 is not known; use 0, 1 or 2; stage 3 is the axis "fsdp"`, func(d *strategy.Document) { d.Search.ZeRO = []int{1, 3} }},
		{"/search/margin", "the margin is 0.95, but must be from 0 to 0.9", func(d *strategy.Document) { d.Search.Margin = new(950) }},
		{"/input/processes", "there are -1 processes, but must be from 1 to 131072", func(d *strategy.Document) { d.Input.Processes = -1 }},
	} {
		d := &strategy.Document{Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 8}, Cluster: devices(8, 8)}
		c.change(d)
		_, err := strategy.Advise(d)
		e, ok := errors.AsType[*status.Error](err)
		if !ok || e.Code != status.InvalidArgument || e.Attr("path") != c.path || e.Error() != "strategy: "+c.path+": "+c.want {
			t.Errorf("got  %v (path %v)\nwant strategy: %s: %s", err, e.Attr("path"), c.path, c.want)
		}
	}
}

func tree(arrays ...strategy.Array) func(*strategy.Document) {
	return func(d *strategy.Document) { d.Model = strategy.Model{Tree: arrays} }
}

func inputs(arrays ...layout.ArraySpec) func(*strategy.Document) {
	return func(d *strategy.Document) { d.Model.Inputs = arrays }
}
