package strategy_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/strategy"
)

// TestMegatronMemory compares a stage of the 175B model of Korthikanti et al., arXiv
// 2205.05198, table 3, with their formulas: 8-way tensor and sequence parallelism, 8
// stages of 12 layers, selective recomputation.
func TestMegatronMemory(t *testing.T) {
	const s, h, layers, tensor, stages, vocab = 2048, 12288, 96, 8, 8, 51200
	search := fixed(map[string]int{strategy.Pipe: stages, strategy.Tensor: tensor})
	r := advise(t, &strategy.Document{
		Model:    strategy.Model{Preset: "megatron-175b"},
		Training: strategy.Training{Batch: 64, MicroBatch: 1, Recomputation: strategy.Selective, Attention: strategy.Plain},
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

// TestStages checks uneven stages, and that they have all parameters together. Of the
// stages before the last one, the first ones have fewer layers.
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
			Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 16}, Cluster: devices(c.pipe, c.pipe),
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
// head if that is larger.
func TestBuffers(t *testing.T) {
	const layer = 1024*1024*2 + 2*1024*256 + 3*1024*4096 + 2*1024 // attention, key and value, FFN, norms
	const head = 32768*1024 + 1024
	r := advise(t, &strategy.Document{
		Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 8, Recomputation: strategy.None}, Cluster: devices(8, 8),
		Search: fixed(map[string]int{strategy.FSDP: 8}),
	})
	if got, want := r.Candidates[0].Memory.Buffers, int64(2*max(2*layer, head)+2*max(layer, head)); got != want {
		t.Errorf("the buffers are %d bytes, want %d", got, want)
	}
}
