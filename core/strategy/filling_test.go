package strategy

import (
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/pipeline"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestFillingAgainstSchedules compares the time of a step with a timeline of the same
// stages, which are unequal: the last one has the head, and layers may not divide. With
// GPipe both are equal. With 1F1B a step may be shorter, because other stages work
// ahead while the slowest one runs.
func TestFillingAgainstSchedules(t *testing.T) {
	random.Rounds(t, 50, 1000, func(t *testing.T, r *rand.Rand) {
		kind := random.One(r, pipeline.GPipe, pipeline.OneFOneB)
		p, err := newPlanner(&Document{
			Model:    Model{Transformer: &Transformer{Layers: 8 + r.IntN(9), Hidden: 256, Heads: 4, FFN: 1024, Vocab: 1 + r.IntN(5000), Sequence: 128}},
			Training: Training{Batch: int64(1 + r.IntN(24)), Schedule: string(kind)}, Cluster: Cluster{Device: "tpu-v5p", Devices: 1 + r.IntN(8)},
		})
		if err != nil {
			t.Fatal(err)
		}
		e := newEvaluator(p)
		e.enter(sizes{p.cluster.Devices, 1, 1, 1, 1, 1})
		e.divide(1)
		if err := e.keep(recomputations[0]); err != nil {
			t.Fatal(err)
		}
		_, most := e.slowest(e.stages)
		want := (float64(e.micros) + e.filling(most, e.stages)) * most
		line, err := pipeline.Build(kind, e.sizes[pipeAxis], e.micros, 1, e.durations(most))
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(line.Span) / (3 * ticks) * most; got > want*1.0001 || got < want*0.9 || kind == pipeline.GPipe && got < want*0.9999 {
			t.Errorf("%s with %d stages and %d micro-batches takes %g operations, the formula has %g", kind, p.cluster.Devices, e.micros, got, want)
		}
	})
}

// ticks is the time of a third of a micro-batch on the slowest stage.
const ticks = 1_000_000

// durations returns the times of all stages, in thirds for the forward pass and the two
// halves of the backward pass.
func (e *evaluator) durations(most float64) (d pipeline.Durations) {
	for _, g := range e.model.stages(e.sizes[pipeAxis], 1) {
		needed, _ := e.operations(&g)
		n := round(needed / most * ticks)
		d.Forward, d.Backward, d.Weight = append(d.Forward, n), append(d.Backward, n), append(d.Weight, n)
	}
	return d
}
