package diagram_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/diagram"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// report is a report with two candidates. The second does not fit.
func report() *strategy.Report {
	memory := func(weights, activations int64) strategy.Memory {
		return strategy.Memory{Weights: weights, Gradients: weights, Optimizer: 2 * weights, Activations: activations, Buffers: 1e9, Capacity: 40e9}
	}
	return &strategy.Report{
		Model: strategy.ModelSummary{Name: "small"}, Devices: 8,
		Candidates: []strategy.Candidate{
			{Mesh: []mesh.Axis{{Name: "pipe", Size: 2}, {Name: "fsdp", Size: 4}}, Recomputation: strategy.Full, Memory: memory(4e9, 6e9)},
			{Mesh: []mesh.Axis{{Name: "data", Size: 8}}, ZeRO: 1, Recomputation: strategy.None, Memory: memory(8e9, 15e9)},
			{Recomputation: strategy.Selective, Memory: memory(1e6, 1e5)},
		},
		Stages: []strategy.Stage{{Number: 0, Memory: memory(4e9, 6e9)}, {Number: 1, Memory: memory(5e9, 3e9)}},
	}
}

func TestMemoryOfCandidates(t *testing.T) {
	drawn(t, diagram.CandidateMemory(report()), `Memory of a device: small on 8 devices
A device has 40 GB.

pipe 2 fsdp 4 full    ▕WWGGGOOOOOAAAAB···········┃·····▏  23 GB
data 8 ZeRO-1         ▕WWWWWGGGGGOOOOOOOOOOOAAAAA┃AAAAB▏  48 GB, 8 GB too much
one device selective  ▕WGOAB·····················┃·····▏  1 GB

W weights  G gradients  O optimizer  A activations  B buffers
`)
}

func TestMemoryOfStages(t *testing.T) {
	drawn(t, diagram.StageMemory(report()), `Memory of a device: small on 8 devices
A device has 40 GB.

stage 0  ▕WWWGGGOOOOOOAAAAAB··············▏  23 GB
stage 1  ▕WWWWGGGGOOOOOOOOAAB·············▏  24 GB

W weights  G gradients  O optimizer  A activations  B buffers
`)
}

// Without a capacity, the largest bar is as wide as the drawing.
func TestMemoryWithoutCapacity(t *testing.T) {
	m := diagram.Memory{Title: "Memory", Bars: []diagram.MemoryBar{{Label: "a", Memory: strategy.Memory{Weights: 500}}, {Label: "b", Memory: strategy.Memory{Buffers: 1000}}}}
	drawn(t, m, `Memory

a  ▕WWWWWWWWWWWWWWWW················▏  500 B
b  ▕BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB▏  1 kB

W weights  B buffers
`)
}

func TestMemoryOfManyCandidates(t *testing.T) {
	r := report()
	for range diagram.MaxBars {
		r.Candidates = append(r.Candidates, r.Candidates[0])
	}
	if n := len(diagram.CandidateMemory(r).Bars); n != diagram.MaxBars {
		t.Errorf("there are %d bars, want %d", n, diagram.MaxBars)
	}
	_, err := diagram.CandidateMemory(&strategy.Report{}).Draw()
	const want = "diagram: /bars: expected 1 to 64 bars, but found 0"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func drawn(t *testing.T, spec diagram.Spec, want string) {
	t.Helper()
	d, err := spec.Draw()
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Text(0); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
