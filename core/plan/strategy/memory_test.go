package strategy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// TestMegatronMemory compares a stage of the 175B model of Korthikanti et al., arXiv
// 2205.05198, table 3, with their formulas: 8-way tensor and sequence parallelism, 8
// stages of 12 layers, selective recomputation.
func TestMegatronMemory(t *testing.T) {
	const s, h, layers, tensor, stages, vocab = 2048, 12288, 96, 8, 8, 51200
	search := fixed(map[string]int{strategy.Pipe: stages, strategy.Tensor: tensor})
	r := advise(t, &strategy.Document{
		Model:    strategy.Model{Preset: "megatron-175b"},
		Training: strategy.Training{Batch: 64, MicroBatch: 1, Recomputation: strategy.Selective, Attention: strategy.Plain, Schedule: "1f1b"},
		Cluster:  strategy.Cluster{Device: "a100-80", Devices: 64}, Search: search,
	})
	first := r.Stages[0]
	// Equation 5 for the layers of all micro-batches in flight, and section 4.2.3 for
	// the dropout mask of the embedding, s·b·h·p/t.
	if want := int64(34*s*h/tensor*layers + s*h*stages/tensor); first.Memory.Activations != want {
		t.Errorf("stage 0 keeps %d bytes of activations, the paper %d", first.Memory.Activations, want)
	}
	if first.Live != stages {
		t.Errorf("stage 0 keeps %d micro-batches, not %d", first.Live, stages)
	}
	// A layer has 12·h² weights, of which tensor parallelism divides all; the biases
	// and norms are 13·h, of which 7·h are divided. The embedding has V·h + s·h.
	perLayer := int64(12*h*h/tensor + 7*h/tensor + 6*h)
	want := perLayer*layers/stages + vocab/tensor*h + s*h
	if got := first.Memory.Weights; got != 2*want {
		t.Errorf("stage 0 has weights of %d bytes, not %d", got, 2*want)
	}
	if m := first.Memory; m.Gradients != 2*want || m.Optimizer != 12*want {
		t.Errorf("stage 0 has gradients of %d and states of %d bytes, not 2 and 12 times %d", m.Gradients, m.Optimizer, want)
	}
}

// TestStages checks uneven stages, and that their parameters add up to the model's
// parameters. Among the stages before the last one, the first ones have fewer layers.
func TestStages(t *testing.T) {
	for _, c := range []struct {
		tied    bool
		layers  int
		pipe    int
		want    []int
		experts *strategy.Experts
	}{
		{false, 8, 4, []int{2, 2, 3, 1}, nil}, // the head takes as long as 1.7 layers
		{true, 10, 4, []int{3, 3, 3, 1}, nil},
		{false, 16, 4, []int{4, 4, 5, 3}, nil},
		{false, 7, 4, []int{2, 2, 2, 1}, nil},
		{false, 5, 1, []int{5}, nil},
		{true, 6, 4, []int{1, 2, 2, 1}, &strategy.Experts{Count: 4, Active: 2, Every: 2}},
	} {
		m := small()
		m.Layers, m.Tied, m.Experts = c.layers, &c.tied, c.experts
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 16, Schedule: "1f1b"}, Cluster: devices(c.pipe, c.pipe),
			Search: fixed(map[string]int{strategy.Pipe: c.pipe}),
		})
		var layers []int
		parameters, next := int64(0), 0
		for _, g := range r.Stages {
			layers = append(layers, g.Layers)
			parameters += g.Parameters
			if g.FirstLayer != next {
				t.Errorf("stage %d of %v begins with layer %d, not %d", g.Number, c.want, g.FirstLayer, next)
			}
			next += g.Layers
		}
		if c.tied && c.pipe > 1 {
			parameters -= int64(m.Vocab) * int64(m.Hidden) // the copy on the last stage
		}
		if fmt.Sprint(layers) != fmt.Sprint(c.want) || parameters != r.Model.Parameters {
			t.Errorf("%d layers on %d stages: %v with %d parameters, want %v with %d", c.layers, c.pipe, layers, parameters, c.want, r.Model.Parameters)
		}
	}
}

// TestBuffers checks what fsdp gathers: two layers and the gradients of one, or the
// head if that is larger. In the best case, it is the largest array with its gradient, and
// a layer uses the memory of the logits after they are freed.
func TestBuffers(t *testing.T) {
	const layer = 1024*1024*2 + 2*1024*256 + 3*1024*4096 + 2*1024 // attention, key and value, FFN, norms
	const head = 32768*1024 + 1024
	d := &strategy.Document{
		Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 8, Recomputation: strategy.None}, Cluster: devices(8, 8),
		Search: fixed(map[string]int{strategy.FSDP: 8}),
	}
	r := advise(t, d)
	const buffers = 2*max(2*layer, head) + 2*max(layer, head)
	m := r.Candidates[0].Memory
	if m.Buffers != buffers {
		t.Errorf("the buffers are %d bytes, want %d", m.Buffers, buffers)
	}
	// Norm inputs, queries, keys and values, attention output, log-sum-exp, gate and up.
	const kept = 2*(2*1024+2*1024+2*256+2*4096) + 4*16
	const ends = 2*2*1024 + 4*32768 // norm and head input, logits
	if want := int64(2048*(4*kept+ends) - (buffers - 4*32768*1024)); m.ActivationsLow != want {
		t.Errorf("the least activations are %d bytes, want %d", m.ActivationsLow, want)
	}
	// The buffers include the inputs of both blocks and the product of gate and up.
	d.Training.Recomputation = strategy.Full
	m = advise(t, d).Candidates[0].Memory
	if want := int64(2048*(4*2*1024+ends-kept-2*(2*1024+4096)) - (buffers - 4*32768*1024)); m.ActivationsLow != want {
		t.Errorf("with full recomputation, the least activations are %d bytes, want %d", m.ActivationsLow, want)
	}
}

// TestMicroBatchesInFlight computes the activations of the first and the last of two
// stages: their layers, and the embedding or the head, of all micro-batches that they
// keep.
func TestMicroBatchesInFlight(t *testing.T) {
	m := small()
	m.Dropout = new(true) // so that the embedding keeps a mask
	shape := transformer.Shape{Layers: 4, Hidden: 1024, Heads: 16, KVHeads: 4, FFN: 4096, Vocab: 32768, Sequence: 2048, Gated: true, Dropout: true}
	one, err := shape.Activations(transformer.Execution{Batch: 1, SequenceParallel: true})
	if err != nil {
		t.Fatal(err)
	}
	layer, embedding, final := one.Dense.Paper, one.Embedding.Paper, one.Final.Paper
	for schedule, live := range map[string][2]int64{"gpipe": {8, 8}, "1f1b": {2, 1}, "zero-bubble": {2, 2}, "interleaved": {5, 3}} {
		d := &strategy.Document{
			Model: strategy.Model{Transformer: m}, Cluster: devices(2, 2), Search: fixed(map[string]int{"pipe": 2}),
			Training: strategy.Training{Batch: 8, MicroBatch: 1, Recomputation: strategy.None, Schedule: schedule},
		}
		if schedule == "interleaved" {
			d.Training.Chunks = 2
		}
		r := advise(t, d)
		want := [2]int64{live[0] * (int64(r.Stages[0].Layers)*layer + embedding), live[1] * (int64(r.Stages[1].Layers)*layer + final)}
		if schedule == "interleaved" { // chunks with one of two layers; every other chunk has the embedding or the head
			want = [2]int64{5*layer + 3*embedding, 3*layer + 2*final}
		}
		if got := [2]int64{r.Stages[0].Memory.Activations, r.Stages[1].Memory.Activations}; got != want {
			t.Errorf("%s: the stages keep %d bytes of activations, want %d", schedule, got, want)
		}
	}
}

// TestLargestMicroBatch checks that a search leaves out micro-batches with activations too
// large to count, and that a document must not ask for one.
func TestLargestMicroBatch(t *testing.T) {
	d := &strategy.Document{Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 1 << 30}, Cluster: devices(1, 1)}
	d.Cluster.MemoryBytes = 0
	for _, c := range advise(t, d).Candidates {
		if c.MicroBatch > 1<<24 {
			t.Errorf("a micro-batch has %d examples", c.MicroBatch)
		}
	}
	d.Training.MicroBatch = 1 << 30
	_, err := strategy.Advise(d)
	if want := "/training/micro_batch: a layer keeps more than 2^53 bytes for 1073741824 examples of 2048 tokens"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
