package strategy_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestManyMeshes checks the limit of meshes with a number of devices that has many
// divisors.
func TestManyMeshes(t *testing.T) {
	m := small()
	m.Heads, m.Hidden, m.FFN, m.Layers, m.Sequence, m.KVHeads = 720, 7200, 7200, 720, 720*720, 720
	m.Experts = &strategy.Experts{Count: 720, Active: 2}
	r := advise(t, &strategy.Document{Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 720720}, Cluster: devices(720720, 720)})
	if r.Meshes != strategy.MaxMeshes {
		t.Errorf("%d meshes are evaluated, not %d", r.Meshes, strategy.MaxMeshes)
	}
	last := r.Pruned[len(r.Pruned)-1]
	if last.Code != strategy.TooManyMeshes || last.Message != "only the 2,048 meshes with the fewest axes are evaluated; for others, name sizes in search.axes" {
		t.Errorf("the last rule is %+v", last)
	}
	sum := r.Meshes
	for _, p := range r.Pruned {
		sum += p.Count
	}
	// 720720 = 2^4·3^2·5·7·11·13, over six axes: C(9,5)·C(7,5)·6^4 ordered products
	if want := int64(126 * 21 * 6 * 6 * 6 * 6); sum != want {
		t.Errorf("there are %d meshes, want %d", sum, want)
	}
}

// extreme returns a number that may be invalid, or at a limit.
func extreme(r *rand.Rand) int64 {
	return random.One[int64](r, 0, 1, 1, 2, 3, 8, 8, 64, 127, 4096, 1<<20, 1<<31, 1<<40, 1<<53, 1<<53+1, 1<<62, -1, -1<<63, 1<<63-1)
}

// TestHostileDocuments checks that extreme numbers end in an error with a path, or in a
// report without negative numbers.
func TestHostileDocuments(t *testing.T) {
	random.Rounds(t, 300, 20000, func(t *testing.T, r *rand.Rand) {
		size := func() int { return int(extreme(r)) }
		few := func() int { return random.One(r, 1, 2, 8, 64, size()) }
		d := &strategy.Document{
			Training: strategy.Training{
				Batch: random.One(r, extreme(r), 64), MicroBatch: random.One(r, 0, 0, 1, size()), Chunks: random.One(r, 0, 0, few()), Schedule: random.One(r, "", "gpipe", "interleaved"),
				Optimizer: random.One(r, "", "adafactor", "muon"), Recomputation: random.One(r, "", "full", "none"), Attention: random.One(r, "", "plain"),
			},
			Cluster: strategy.Cluster{Devices: few(), PerNode: random.One(r, 0, 0, few()), MemoryBytes: extreme(r), FLOPsPerSecond: extreme(r), NodeBytesPerSecond: extreme(r), NetworkBytesPerSecond: extreme(r), HBMBytesPerSecond: extreme(r), HostBytes: extreme(r)},
			Input:   strategy.Input{RowsPerSecond: extreme(r)},
		}
		switch r.IntN(3) {
		case 0:
			d.Model.Transformer = &strategy.Transformer{Layers: few(), Hidden: few(), Heads: random.One(r, 1, few()), FFN: few(), Vocab: few(), Sequence: few(), KVHeads: random.One(r, 0, few()), HeadDim: random.One(r, 0, few())}
			if r.IntN(3) == 0 {
				d.Model.Transformer.Experts = &strategy.Experts{Count: few(), Active: random.One(r, 1, few()), Capacity: random.One(r, 0, few()), Shared: random.One(r, 0, few())}
			}
		case 1:
			d.Model.Parameters, d.Model.FLOPsPerExample, d.Model.ActivationBytesPerExample = extreme(r), new(extreme(r)), new(extreme(r))
		default:
			d.Model.Tree = []strategy.Array{{Name: "w", Shape: []int{few(), size()}, Element: random.One(r, "float32", "int4", "key<fry>")}, {Name: "v", Element: "bfloat16"}}
			d.Model.Inputs = []layout.ArraySpec{{Name: "x", RowShape: []int{few()}, Type: 1}}
		}
		report, err := strategy.Advise(d)
		if e, ok := errors.AsType[*status.Error](err); ok && e.Code == status.InvalidArgument && e.Attr("path") != nil {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		for _, c := range report.Candidates {
			m := c.Memory
			if min(m.Weights, m.Gradients, m.Optimizer, m.ActivationsLow, m.Activations, m.ActivationsHigh, m.Buffers, m.Total) < 0 {
				t.Fatalf("%+v\nof %+v", m, d)
			}
			if x := c.Time; x != nil && min(x.Low, x.Step-x.Low, x.High-x.Step, x.Compute, x.HBM, x.Tensor, x.FSDP, x.Data, x.Context, x.Expert, x.Pipe, x.Bubble, x.Hidden, x.TokensPerSecond+1, x.ExamplesPerSecond, x.MFU) < 0 {
				t.Fatalf("%+v\nof %+v", x, d)
			}
		}
	})
}
