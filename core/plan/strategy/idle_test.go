package strategy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestIdleTimeAgainstSchedules compares the time of a step with a timeline of the same
// stages. They are unequal, because the last one has the head, and layers may not divide.
// With GPipe both times are equal. With 1F1B a step may be shorter than the formula says,
// because other stages work ahead while the slowest one runs. With an interleaved schedule, the first and the last
// chunk may have a layer less.
func TestIdleTimeAgainstSchedules(t *testing.T) {
	random.Rounds(t, 50, 1000, func(t *testing.T, r *rand.Rand) {
		kind := random.One(r, pipeline.GPipe, pipeline.OneFOneB, pipeline.Interleaved)
		pipe, chunks, layers, batch := 1+r.IntN(8), 0, 8+r.IntN(9), 1+r.IntN(24)
		shortest, longest := 0.9, 1.0001
		if kind == pipeline.Interleaved {
			shortest, longest = 0.75, 1.25 // chunks are unequal, which matters for few micro-batches
			pipe, chunks = 2+r.IntN(7), 2+r.IntN(3)
			layers, batch = pipe*chunks*(1+r.IntN(3))-r.IntN(3), pipe*(1+r.IntN(6))
		}
		p, err := newPlanner(&Document{
			Model:    Model{Transformer: &Transformer{Layers: layers, Hidden: 256, Heads: 4, FFN: 1024, Vocab: 1 + r.IntN(5000), Sequence: 128}},
			Training: Training{Batch: int64(batch), Schedule: string(kind), Chunks: chunks}, Cluster: Cluster{Device: "tpu-v5p", Devices: pipe},
		})
		if err != nil {
			t.Fatal(err)
		}
		e := newEvaluator(p)
		e.setMesh(sizes{pipe, 1, 1, 1, 1, 1})
		e.setMicroBatch(1)
		if err := e.setRecomputation(recomputations[0]); err != nil {
			t.Fatal(err)
		}
		_, most := e.slowest(e.stages)
		want := (float64(e.micros) + e.idleTime(most, e.stages)) * most
		d := e.durations(1e6)
		line, err := pipeline.Build(kind, pipe, e.micros, e.chunks, d)
		if err != nil {
			t.Fatal(err)
		}
		operations, ticks := 0.0, int64(0)
		for _, g := range e.stages {
			needed, _ := e.operations(&g)
			operations += needed * float64(g.equal)
		}
		for k := range d.Forward {
			ticks += d.Forward[k] + d.Backward[k] + d.Weight[k]
		}
		if got := float64(line.Span) * operations / float64(ticks); got > want*longest || got < want*shortest || kind == pipeline.GPipe && got < want*0.9999 {
			t.Errorf("%s with %d stages and %d micro-batches takes %g operations, the formula has %g", kind, pipe, e.micros, got, want)
		}
	})
}

// TestPipelineOfCandidates compares the timeline in the report with the time of the slowest
// stage. The timeline's durations are rounded to a hundredth of the longest. Without
// rounding, both are equal with GPipe. Rounding changes a duration of 33 ticks or more by
// at most 1.6 %. It may shorten the slowest stage and lengthen the step, so the idle shares
// differ by at most 0.032.
func TestPipelineOfCandidates(t *testing.T) {
	random.Rounds(t, 50, 1000, func(t *testing.T, r *rand.Rand) {
		p, err := newPlanner(&Document{
			Model:    Model{Transformer: &Transformer{Layers: 8 + r.IntN(9), Hidden: 256, Heads: 4, FFN: 1024, Vocab: 1 + r.IntN(5000), Sequence: 128}},
			Training: Training{Batch: 1 + r.Int64N(24), Schedule: "gpipe"}, Cluster: Cluster{Device: "tpu-v5p", Devices: 2 + r.IntN(4)},
		})
		if err != nil {
			t.Fatal(err)
		}
		e := newEvaluator(p)
		e.setMesh(sizes{p.cluster.Devices, 1, 1, 1, 1, 1})
		e.setMicroBatch(1)
		if err := e.setRecomputation(random.One(r, recomputations...)); err != nil {
			t.Fatal(err)
		}
		slow, most := e.slowest(e.stages)
		idle := e.idleTime(most, e.stages)
		want := idle / (float64(e.micros) + idle)
		c := e.pipeline()
		line, err := pipeline.Build(c.Kind, c.Stages, c.MicroBatches, c.Chunks, c.Durations)
		if err != nil {
			t.Fatal(err)
		}
		d, n := c.Durations, slow.number
		got := 1 - float64(int64(c.MicroBatches)*(d.Forward[n]+d.Backward[n]+d.Weight[n]))/float64(line.Span)
		if math.Abs(got-want) > 0.032 {
			t.Errorf("stage %d of %d, with %d micro-batches and %s recomputation, is idle for %.3f of the time, the formula has %.3f", n, c.Stages, c.MicroBatches, e.recompute, got, want)
		}
	})
}

// TestBalance compares the slowest stage with the slowest stage of all ways to divide the
// layers.
func TestBalance(t *testing.T) {
	random.Rounds(t, 50, 1000, func(t *testing.T, r *rand.Rand) {
		m := &Transformer{Layers: 1 + r.IntN(14), Hidden: 256, Heads: 4, FFN: 1024, Vocab: 1 + r.IntN(20000), Sequence: 128}
		p, err := newPlanner(&Document{Model: Model{Transformer: m}, Training: Training{Batch: 1}, Cluster: Cluster{Device: "tpu-v5p", Devices: 1}})
		if err != nil {
			t.Fatal(err)
		}
		pipe := 1 + r.IntN(min(4, m.Layers))
		got, total := p.model.divide(pipe, 1), 0
		for _, n := range got {
			total += n
		}
		if least := p.least(m.Layers, pipe); total != m.Layers || p.slow(got) > least*1.000001 {
			t.Errorf("%d layers on %d stages: %v takes %g, but %g is possible", m.Layers, pipe, got, p.slow(got), least)
		}
	})
}

// slow returns the operations of the slowest stage.
func (p *planner) slow(layers []int) float64 {
	f, most := p.model.shape.Computed(1, p.attention), 0.0
	for k, n := range layers {
		operations := float64(f.Dense+f.Attention) * float64(n)
		if k == len(layers)-1 {
			operations += float64(f.Head)
		}
		most = max(most, operations)
	}
	return most
}

// least returns the operations of the slowest stage, for the best of all divisions.
func (p *planner) least(layers, pipe int) float64 {
	best := math.Inf(1)
	var all func(before []int, rest int)
	all = func(before []int, rest int) {
		if len(before) == pipe-1 {
			best = min(best, p.slow(append(before, rest)))
			return
		}
		for n := 1; n <= rest-(pipe-1-len(before)); n++ {
			all(append(before, n), rest-n)
		}
	}
	all(nil, layers)
	return best
}

// TestChunks checks how an interleaved schedule divides layers.
func TestChunks(t *testing.T) {
	for _, c := range []struct {
		layers, chunks int
		want           []int // nil if the layers cannot be divided
	}{
		{8, 4, []int{2, 2, 2, 2}},
		{7, 4, []int{2, 2, 2, 1}},
		{6, 4, []int{1, 2, 2, 1}},
		{5, 4, nil},
		{3, 4, []int{1, 1, 1, 0}},
		{2, 4, []int{0, 1, 1, 0}},
	} {
		if missing(c.layers, c.chunks) > 2 {
			if c.want != nil {
				t.Errorf("%d layers do not divide into %d chunks", c.layers, c.chunks)
			}
			continue
		}
		m := &model{layers: c.layers}
		if got := m.equal(c.chunks); !slices.Equal(got, c.want) {
			t.Errorf("%d layers in %d chunks: %v, want %v", c.layers, c.chunks, got, c.want)
		}
	}
}
