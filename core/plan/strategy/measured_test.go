package strategy_test

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// TestMeasuredMemory compares the interval of the memory with measured peaks of torchtitan
// on H100s and H200s. Weights, gradients and states were in float32, and activations in
// bfloat16 [benchmarks/llama3_h100_202412_torchtitan.md, tables 1 to 4, and
// benchmarks/llama3_8b_h200_2025-06_torchtitan.md]. Its selective checkpointing keeps every
// second product, which is more than full recomputation keeps, and less than selective.
func TestMeasuredMemory(t *testing.T) {
	const selective = "every second product"
	for _, c := range []struct {
		preset        string
		fsdp, tensor  int
		micro         int
		sequence      int
		recomputation string
		hundredths    []int64 // hundredths of GiB
	}{
		{"llama3-8b", 8, 1, 2, 8192, selective, []int64{8240, 7700, 7680}},
		{"llama3-8b", 128, 1, 2, 8192, selective, []int64{6700, 6200, 6180}},
		{"llama3-8b", 32, 1, 2, 8192, selective, []int64{4796}},
		{"llama3-8b", 64, 1, 2, 8192, selective, []int64{4697}},
		{"llama3-8b", 8, 1, 1, 32768, strategy.Full, []int64{8390}},
		{"llama3-70b", 32, 8, 16, 8192, strategy.Full, []int64{7190, 6760}},
	} {
		measure := func(recomputation string) (low, high int64) {
			d := &strategy.Document{
				Model:    strategy.Model{Preset: c.preset, Transformer: &strategy.Transformer{Sequence: c.sequence}},
				Training: strategy.Training{Batch: int64(c.fsdp * c.micro), MicroBatch: c.micro, Recomputation: recomputation},
				Cluster:  strategy.Cluster{Device: "h200-141", Devices: c.fsdp * c.tensor},
				Search:   fixed(map[string]int{strategy.FSDP: c.fsdp, strategy.Tensor: c.tensor}),
			}
			d.Training.Precision = strategy.Precision{Weights: "float32", Gradients: "float32"}
			m := advise(t, d).Candidates[0].Memory
			return m.Total - m.Activations + m.ActivationsLow, m.Total - m.Activations + m.ActivationsHigh
		}
		low, high := measure(strategy.Full)
		if c.recomputation == selective {
			_, high = measure(strategy.Selective)
		}
		for _, n := range c.hundredths {
			if bytes := n << 30 / 100; bytes < low || bytes > high {
				t.Errorf("%s, fsdp %d, tensor %d, %d × %d tokens: %d bytes were measured, not between %d and %d", c.preset, c.fsdp, c.tensor, c.micro, c.sequence, bytes, low, high)
			}
		}
	}
}

// TestLeastMemory checks the lower bound of the memory of published runs. It is at most the
// memory of a device, because they all ran. It leaves out sets if the source does not name
// the recomputation, or the library moves activations to the host.
func TestLeastMemory(t *testing.T) {
	for _, m := range publishedRuns(t) {
		if slices.Contains([]string{blackwell8, manyNarrow, chosenTPU7, narrowTPU}, m.set) {
			continue
		}
		got := advise(t, m.doc).Candidates[0].Memory
		if least := got.Total - got.Activations + got.ActivationsLow; least > got.Capacity {
			t.Errorf("%s, %s needs at least %d bytes of %d: %+v", m.set, m.name, least, got.Capacity, got)
		}
	}
}

// TestDistributedOptimizer compares the bytes per parameter with the table of Megatron
// Core's guide to its distributed optimizer. That is ZeRO stage 1 over the data and the
// context axis. The row for gradients in float16 has a copy of them in float32, which the
// planner does not have.
func TestDistributedOptimizer(t *testing.T) {
	for _, c := range []struct {
		weights            string
		replicated, kept   int64 // without, and with the distributed optimizer
		divided            int64
		data, context, all int
	}{
		{"bfloat16", 18, 6, 12, 8, 1, 8},
		{"bfloat16", 18, 6, 12, 2, 4, 8},
		{"float32", 16, 8, 8, 4, 1, 4},
	} {
		d := &strategy.Document{
			Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 8}, Cluster: devices(c.all, c.all),
			Search: fixed(map[string]int{strategy.Data: c.data, strategy.Context: c.context}),
		}
		d.Training.Precision = strategy.Precision{Weights: c.weights, Gradients: "float32"}
		n := advise(t, d).Model.Parameters
		for zero, want := range []int64{c.replicated * n, c.kept*n + c.divided*n/int64(c.all)} {
			d.Search.ZeRO = []int{zero}
			m := advise(t, d).Candidates[0].Memory
			if got := m.Weights + m.Gradients + m.Optimizer; got != want {
				t.Errorf("%s, data %d, context %d, ZeRO %d: %d bytes for %d parameters, want %d", c.weights, c.data, c.context, zero, got, n, want)
			}
		}
	}
}
