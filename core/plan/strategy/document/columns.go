package document

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// column is a column of the table of candidates.
type column struct {
	title string
	right bool // numbers are aligned to the right
	cell  func(u timeUnit, index int, c *strategy.Candidate) string
	note  string // what the column means; "" if its title says it
}

// columns lists the columns of the table of candidates.
var columns = []column{
	{"", true, func(_ timeUnit, number int, _ *strategy.Candidate) string { return strconv.Itoa(number + 1) }, ""},
	{"mesh", false, func(_ timeUnit, _ int, c *strategy.Candidate) string { return meshText(c) }, ""},
	{"ZeRO", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return zero(c) },
		"1 divides the states of the optimizer over the replicas, 2 also the gradients; fsdp is 3"},
	{"remat", false, func(_ timeUnit, _ int, c *strategy.Candidate) string {
		return c.Recomputation[:min(6, len(c.Recomputation))]
	}, "what the backward pass computes again: full each whole layer, dots all but matrix products"},
	{"micro", true, func(_ timeUnit, _ int, c *strategy.Candidate) string {
		return short(int64(c.MicroBatches)) + "×" + short(int64(c.MicroBatch))
	}, "micro-batches of a step × examples of one, in each replica"},
	{"weights", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Weights) }, ""},
	{"grads", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Gradients) }, ""},
	{"optim", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Optimizer) },
		"states of the optimizer, and the master copy of the weights"},
	{"activ", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Activations) },
		"activations that the backward pass needs, with fused kernels"},
	{"bufs", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Buffers) },
		"gathered weights, and what a layer computes again"},
	{"free", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return free(c.Memory) },
		"what is left of the memory, after the margin"},
	{"max", true, func(_ timeUnit, _ int, c *strategy.Candidate) string { return gigabytes(c.Memory.Most()) },
		"all memory without fused kernels, as in JAX; candidates that fit with it come first"},
	{"step", true, func(u timeUnit, _ int, c *strategy.Candidate) string {
		if c.Time == nil {
			return unknown
		}
		return u.text(c.Time.Step)
	}, ""},
	{"range", true, func(u timeUnit, _ int, c *strategy.Candidate) string {
		if c.Time == nil {
			return unknown
		}
		return u.text(c.Time.Low) + "–" + u.text(c.Time.High)
	}, "the step in the best and in the worst case"},
	{"bound", false, func(_ timeUnit, _ int, c *strategy.Candidate) string {
		switch {
		case c.Time == nil:
			return unknown
		case c.Time.Bound == "hbm":
			return "memory"
		}
		return c.Time.Bound
	}, "the largest part of the step"},
}

const (
	meshColumn  = 1 // index of the column of meshes
	leastColumn = 8 // the least width of the column of meshes, so that "context," fits

	unknown = "?"
)

// notes explains the columns with a value for some candidate.
func notes(r *strategy.Report) [][]string {
	var rows [][]string
	for _, c := range columns {
		valued := func(k strategy.Candidate) bool {
			return !slices.Contains([]string{"0", strategy.None, unknown}, c.cell(timeUnits[0], 0, &k))
		}
		if c.note != "" && slices.ContainsFunc(r.Candidates, valued) {
			rows = append(rows, []string{c.title, c.note})
		}
	}
	return rows
}

const axesTitle = "What the axes split"

// splits says what an axis splits.
var splits = map[string]string{
	strategy.Pipe:    "the layers, into stages",
	strategy.Data:    "the batch",
	strategy.FSDP:    "the batch, and every array of the model",
	strategy.Expert:  "the batch, and the experts",
	strategy.Context: "the sequence",
	strategy.Tensor:  "every layer: heads, hidden units, the vocabulary",
}

// usedAxes says what each axis splits that a candidate has.
func usedAxes(r *strategy.Report) [][]string {
	var rows [][]string
	for _, name := range strategy.Axes() {
		named := func(a mesh.Axis) bool { return a.Name == name }
		if slices.ContainsFunc(r.Candidates, func(c strategy.Candidate) bool { return slices.ContainsFunc(c.Mesh, named) }) {
			what := splits[name]
			if name == strategy.Pipe && slices.ContainsFunc(r.Candidates, func(c strategy.Candidate) bool { return c.Chunks > 1 }) {
				what += "; × chunks of layers in each stage, interleaved"
			}
			rows = append(rows, []string{name, what})
		}
	}
	return rows
}

// meshText lists the axes of a mesh, and after the first one, pipe, the chunks of a stage.
// The space before a size does not break.
func meshText(c *strategy.Candidate) string {
	text := strategy.MeshText(c.Mesh)
	if c.Chunks > 1 {
		pipe, others, _ := strings.Cut(text, ",")
		text = pipe + " × " + strconv.Itoa(c.Chunks) + "," + others
	}
	text = strings.TrimSuffix(text, ",")
	return strings.ReplaceAll(strings.ReplaceAll(text, " ", noBreak), ","+noBreak, ", ")
}

// zero writes the stage of ZeRO. The axis fsdp is stage 3.
func zero(c *strategy.Candidate) string {
	if !slices.ContainsFunc(c.Mesh, func(a mesh.Axis) bool { return a.Name == strategy.FSDP }) {
		return strconv.Itoa(c.ZeRO)
	}
	if c.ZeRO == 0 {
		return "3"
	}
	return strconv.Itoa(c.ZeRO) + "+3"
}

func free(m strategy.Memory) string {
	if m.Capacity == 0 {
		return unknown
	}
	return gigabytes(m.Free)
}
