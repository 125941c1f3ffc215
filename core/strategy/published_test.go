package strategy_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/pipeline"
	"github.com/meshfeed/meshfeed/core/strategy"
)

// Memory per device in GB [Rajbhandari et al., arXiv 1910.02054, table 1]: for a number
// of parameters, the three stages of ZeRO at data-parallel degrees from 1 to 1024.
var zeroTable = []struct {
	parameters int64
	rows       string // degree, Pos, Pos+g, Pos+g+p
}{
	{7_500_000_000, `
		1    120  120  120
		4    52.5 41.3 30
		16   35.6 21.6 7.5
		64   31.4 16.6 1.88
		256  30.4 15.4 0.47
		1024 30.1 15.1 0.12`},
	{128_000_000_000, `
		1    2048 2048 2048
		4    896  704  512
		16   608  368  128
		64   536  284  32
		256  518  263  8
		1024 513  257  2`},
	{1_000_000_000_000, `
		1    16000 16000 16000
		4    7000  5500  4000
		16   4750  2875  1000
		64   4187  2218  250
		256  4046  2054  62.5
		1024 4011  2013  15.6`},
}

// The paper rounds some numbers of its table and cuts others, so each may differ by less
// than one unit of its last digit.
func TestMemoryOfZeRO(t *testing.T) {
	for _, model := range zeroTable {
		for row := range strings.SplitSeq(strings.TrimSpace(model.rows), "\n") {
			cells := strings.Fields(row)
			degree, err := strconv.Atoi(cells[0])
			if err != nil {
				t.Fatal(err)
			}
			for stage, cell := range cells[1:] {
				got, want := stateBytes(t, model.parameters, degree, stage+1), number(t, cell)
				unit := 1.0
				if _, decimals, found := strings.Cut(cell, "."); found {
					unit = math.Pow10(-len(decimals))
				}
				if math.Abs(float64(got)/1e9-want) >= unit {
					t.Errorf("%d parameters, degree %d, stage %d: %d bytes, the paper has %s GB", model.parameters, degree, stage+1, got, cell)
				}
			}
		}
	}
}

// stateBytes returns the bytes of weights, gradients and optimizer with a stage of ZeRO.
// Stage 3 is the axis fsdp.
func stateBytes(t *testing.T, parameters int64, degree, stage int) int64 {
	t.Helper()
	d := &strategy.Document{
		Model:    strategy.Model{Parameters: parameters},
		Training: strategy.Training{Batch: int64(degree)},
		Cluster:  strategy.Cluster{Devices: degree, PerNode: 1, MemoryBytes: 80_000_000_000},
		Search:   fixed(map[string]int{strategy.Data: degree}),
	}
	d.Search.ZeRO = []int{stage}
	if stage == 3 {
		d.Search = fixed(map[string]int{strategy.FSDP: degree})
	}
	for _, c := range advise(t, d).Candidates {
		if degree == 1 || stage == 3 || c.ZeRO == stage {
			return c.Memory.Weights + c.Memory.Gradients + c.Memory.Optimizer
		}
	}
	t.Fatalf("no candidate of degree %d and stage %d", degree, stage)
	return 0
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run is a published run: a GPT of a shape on A100s of 80 GB.
type run struct {
	name                  string
	heads, hidden, layers int
	tensor, pipe, devices int
	batch                 int64
	micro, chunks         int
	recomputation         string
	sequenceParallel      bool
	seconds               float64
}

// advise returns the candidate of the run.
func (c *run) advise(t *testing.T) strategy.Candidate {
	t.Helper()
	d := &strategy.Document{
		Model: strategy.Model{Transformer: &strategy.Transformer{
			Layers: c.layers, Hidden: c.hidden, Heads: c.heads, FFN: 4 * c.hidden, Vocab: 51200, Sequence: 2048,
			Gated: new(false), Biases: new(true), Norm: "layer", Positions: "learned", Dropout: new(true), Tied: new(true),
		}},
		Training: strategy.Training{
			Batch: c.batch, MicroBatch: c.micro, Recomputation: c.recomputation, Attention: strategy.Plain,
			Schedule: string(pipeline.OneFOneB), SequenceParallel: new(c.sequenceParallel),
		},
		Cluster: strategy.Cluster{Device: "a100-80", Devices: c.devices, PerNode: 8},
		Search:  fixed(map[string]int{strategy.Pipe: c.pipe, strategy.Tensor: c.tensor, strategy.Data: c.devices / c.tensor / c.pipe}),
	}
	d.Search.ZeRO = []int{0}
	if c.chunks > 1 {
		d.Training.Schedule, d.Training.Chunks = string(pipeline.Interleaved), c.chunks
	}
	r := advise(t, d)
	if len(r.Candidates) != 1 || r.Candidates[0].Time == nil {
		t.Fatalf("%s: candidates %+v, problems %+v, pruned %+v", c.name, r.Candidates, r.Problems, r.Pruned)
	}
	return r.Candidates[0]
}

// The published times are within the interval of the plan, and within a third of the
// expected time. All runs fit, as they did.
func TestPublishedTimes(t *testing.T) {
	for _, c := range append(megatronTable(), korthikantiTable()...) {
		got := c.advise(t)
		ns := int64(c.seconds * 1e9)
		if ns < got.Time.Low || ns > got.Time.High || 3*abs(ns-got.Time.Step) > got.Time.Step {
			t.Errorf("%s: published %d ns, expected %d, from %d to %d", c.name, ns, got.Time.Step, got.Time.Low, got.Time.High)
		}
		if !got.Fits {
			t.Errorf("%s: needs %d bytes, and does not fit", c.name, got.Memory.Total)
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// megatronTable has the runs of Narayanan et al., arXiv 2104.04473, table 1. The time
// of a step follows from the achieved operations per second and equation 3. Section
// 5.1 names the interleaved schedule, but neither chunks nor micro-batches.
func megatronTable() (runs []run) {
	for _, c := range []struct {
		name                                      string
		heads, hidden, layers, tensor, pipe, gpus int
		batch                                     int64
		micro, chunks                             int
		teraflops                                 float64
	}{
		{"1.7B", 24, 2304, 24, 1, 1, 32, 512, 16, 1, 137},
		{"3.6B", 32, 3072, 30, 2, 1, 64, 512, 16, 1, 138},
		{"7.5B", 32, 4096, 36, 4, 1, 128, 512, 16, 1, 142},
		{"18.4B", 48, 6144, 40, 8, 1, 256, 1024, 8, 1, 135},
		{"39.1B", 64, 8192, 48, 8, 2, 512, 1536, 1, 2, 138},
		{"76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 1, 3, 140},
		{"145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 1, 2, 148},
		{"310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 1, 2, 155},
		{"529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 1, 3, 163},
		{"GPT-3", 96, 12288, 96, 8, 16, 1024, 1536, 1, 1, 140}, // section 5.1; the split is that of Megatron-LM's README
		{"1008.0B", 160, 25600, 128, 8, 64, 3072, 3072, 1, 2, 163},
	} {
		s, l, h := 2048.0, float64(c.layers), float64(c.hidden)
		operations := 96 * float64(c.batch) * s * l * h * h * (1 + s/(6*h) + 51200/(16*l*h))
		runs = append(runs, run{
			name: c.name, heads: c.heads, hidden: c.hidden, layers: c.layers, tensor: c.tensor, pipe: c.pipe, devices: c.gpus,
			batch: c.batch, micro: c.micro, chunks: c.chunks, recomputation: strategy.Full, seconds: operations / float64(c.gpus) / c.teraflops / 1e12,
		})
	}
	return runs
}

// korthikantiTable has the runs of Korthikanti et al., arXiv 2205.05198, tables 3 and 5.
func korthikantiTable() []run {
	var runs []run
	for _, c := range []struct {
		name                              string
		heads, hidden, layers, pipe, gpus int
		batch                             int64
		micro, chunks                     int
		full, present                     float64
	}{
		{"22B", 64, 6144, 48, 1, 8, 4, 4, 1, 1.42, 1.10},
		{"175B", 96, 12288, 96, 8, 64, 64, 1, 3, 18.13, 13.75},
		{"530B", 128, 20480, 105, 35, 280, 280, 1, 3, 49.05, 37.83},
		{"1T", 160, 25600, 128, 64, 512, 512, 1, 1, 94.42, 71.49},
	} {
		r := run{name: c.name + " full", heads: c.heads, hidden: c.hidden, layers: c.layers, tensor: 8, pipe: c.pipe, devices: c.gpus,
			batch: c.batch, micro: c.micro, chunks: c.chunks, recomputation: strategy.Full, seconds: c.full}
		runs = append(runs, r)
		r.name, r.recomputation, r.sequenceParallel, r.seconds = c.name+" selective", strategy.Selective, true, c.present
		runs = append(runs, r)
	}
	return runs
}

// Utilization of Llama 3 405B on H100s [Llama Team, arXiv 2407.21783, table 4]. Section
// 3.3.2: its first stage has one layer less besides the embedding, and its last one
// besides the head.
func TestUtilizationOfLlama3(t *testing.T) {
	for _, c := range []struct {
		devices, data, context, sequence int
		batch, thousandths               int64
	}{
		{8192, 64, 1, 8192, 2048, 430},
		{16384, 128, 1, 8192, 2048, 410},
		{16384, 8, 16, 131072, 128, 380},
	} {
		d := &strategy.Document{
			Model:    strategy.Model{Preset: "llama3-405b", Transformer: &strategy.Transformer{Sequence: c.sequence, Causal: new(true)}},
			Training: strategy.Training{Batch: c.batch, MicroBatch: 1, Recomputation: strategy.None, Schedule: string(pipeline.Interleaved), Chunks: 8},
			Cluster:  strategy.Cluster{Device: "h100-80", Devices: c.devices},
			Search:   fixed(map[string]int{strategy.Pipe: 16, strategy.Data: c.data, strategy.Context: c.context, strategy.Tensor: 8}),
		}
		d.Search.ZeRO = []int{1}
		r := advise(t, d)
		if len(r.Candidates) != 1 || r.Candidates[0].Time == nil {
			t.Fatalf("candidates %+v, problems %+v, pruned %+v", r.Candidates, r.Problems, r.Pruned)
		}
		for _, g := range r.Stages {
			if end := g.Embedding || g.Head; end && g.Layers != 7 || !end && g.Layers != 8 {
				t.Errorf("stage %d has %d layers", g.Number, g.Layers)
			}
		}
		got := r.Candidates[0].Time
		at := func(step int64) int64 { return got.MFU * got.Step / step }
		if c.thousandths < at(got.High) || c.thousandths > at(got.Low) || 4*abs(c.thousandths-got.MFU) > got.MFU {
			t.Errorf("%d devices, sequence %d: published %d, expected %d, from %d to %d thousandths", c.devices, c.sequence, c.thousandths, got.MFU, at(got.High), at(got.Low))
		}
	}
}
