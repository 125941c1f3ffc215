package document_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/problem"
)

// example is a report with a value in every field. Its numbers are made up.
func example() (*strategy.Document, *strategy.Report) {
	const gb = 1_000_000_000
	d := &strategy.Document{Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 128}, Cluster: strategy.Cluster{Device: "h100-80", Devices: 8}}
	fits := strategy.Candidate{
		Mesh: []mesh.Axis{{Name: "fsdp", Size: 4}, {Name: "tensor", Size: 2}}, Recomputation: strategy.Selective, MicroBatch: 1, MicroBatches: 32, Schedule: "1f1b", Chunks: 1,
		Memory: strategy.Memory{
			Weights: 2*gb + 10_000_000, Gradients: 2 * gb, Optimizer: 12 * gb, Activations: 15 * gb, ActivationsLow: 12 * gb, ActivationsHigh: 20 * gb,
			Buffers: 4_000_000, Total: 31*gb + 14_000_000, Capacity: 80 * gb, Free: 41 * gb,
		},
		Time: &strategy.Time{
			Step: 12_870_000_000, Low: 10_800_000_000, High: 18_100_000_000, Compute: 12_400_000_000, HBM: 90_000_000, Tensor: 380_000_000, FSDP: 2_100_000_000,
			Data: 1, Context: 2, Expert: 3, Pipe: 4, Bubble: 5,
			Hidden: 2_100_000_000, Bound: "compute", Next: "fsdp", Behind: 10_300_000_000, TokensPerSecond: 81_474, ExamplesPerSecond: 9945, MFU: 452, Days: 54_321, DeviceHours: 10_429_632,
		},
		Fits: true,
	}
	piped := fits
	piped.Mesh = []mesh.Axis{{Name: "pipe", Size: 2}, {Name: "data", Size: 2}, {Name: "expert", Size: 2}, {Name: "context", Size: 16384}, {Name: "tensor", Size: 8}}
	piped.ZeRO, piped.Schedule, piped.Chunks = 1, "interleaved", 2
	piped.Memory.Total = 29_000_000_000
	piped.Memory.Capacity, piped.Memory.Free, piped.Time = 0, 0, nil
	piped.Reasons = []string{"the time is not known, because the device has no published bandwidth"}
	large := fits
	large.Mesh, large.ZeRO, large.Recomputation, large.MicroBatch, large.MicroBatches = nil, 2, strategy.Full, 1<<20, 12345
	large.Memory.Weights, large.Memory.Gradients, large.Memory.Free, large.Fits = 1234*gb, 56_789*gb, -58_000*gb, false
	large.Reasons = []string{"needs 58,000 GB, but a device has 80 GB: 56,789 GB are gradients", "1.3 times slower"}
	r := &strategy.Report{
		Model:   strategy.ModelSummary{Name: "llama3-8b", Parameters: 8_030_261_248, ActiveParameters: 8_000_000_000, GigaFLOPsPerStep: 47_000_000},
		Devices: 8, Evaluated: 70, Meshes: 12, Best: 0, Candidates: []strategy.Candidate{fits, piped, large},
		Pruned: []strategy.Pruned{
			{Code: "heads", Count: 5, Message: "tensor must divide the 8 key and value heads"},
			{Code: "context", Count: 1, Message: "the sequence is short", Meshes: [][]mesh.Axis{{{Name: "context", Size: 8}}}},
		},
		Stages: []strategy.Stage{
			{Layers: 16, Embedding: true, Parameters: 4_000_000_000, Live: 2, Memory: fits.Memory, Compute: 12_000_000_000},
			{Number: 1, FirstLayer: 16, Layers: 8, Parameters: 2_000_000_000, Live: 1, Memory: fits.Memory},
			{Number: 2, FirstLayer: 24, Layers: 8, Parameters: 2_000_000_000, Live: 2, Memory: piped.Memory},
			{Number: 3, FirstLayer: 32, Layers: 16, Head: true, Parameters: 4_000_000_000, Live: 1, Memory: fits.Memory, Compute: -1},
		},
		Pipeline: &strategy.Pipeline{
			Kind: pipeline.OneFOneB, Stages: 4, MicroBatches: 32, Chunks: 1,
			Durations: pipeline.Durations{Forward: []int64{50, 25, 25, 55}, Backward: []int64{90, 45, 45, 100}, Weight: []int64{50, 25, 25, 55}},
		},
		Collectives: []strategy.Collective{
			{Op: "all-gather", Axis: "fsdp", What: "weights", Link: "node", Count: 2048, Bytes: 436_000_000, Sent: 450 * gb, Ns: 2_100_000_000, Overlapped: true},
			{Op: "reduce-scatter", Axis: "context", What: "gradients of a layer with experts", Link: "network", Count: 12345, Bytes: 12 * gb, Sent: 12345 * gb, Ns: 1_234_000_000},
			{Op: "all-reduce", Axis: "tensor", Link: "mixed", Count: 4096, Bytes: 67_108_864, Sent: 275 * gb, Ns: -1},
		},
		Layout: &layout.Document{Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "fsdp", Size: 8}}, Processes: 1}},
		Input: &strategy.InputNeeds{
			RowsPerStep: 128, RowsPerSecond: 9945, BytesPerStep: 4_194_304, ReadBytes: 4_194_304, Processes: 2, ProcessRows: 64, ProcessBytes: 2_097_152,
			HostBytes: 8_388_608, Sharing: 2, Groups: 1, Available: 1000, KeepsUp: true, Margin: 100_550,
		},
		Assumptions: []strategy.Assumption{{Code: "efficiency", Text: "matrix products reach 40 to 60 % of the peak FLOP/s, a convention that published trainings support and that is worth changing"}},
		Problems:    []problem.Problem{{Severity: problem.Warning, Code: "tight", Path: "/cluster", Message: "only 9 GB are free", Hint: "use more devices"}},
	}
	return d, r
}

// TestTexts compares the texts of reports with golden files.
func TestTexts(t *testing.T) {
	datadriven.RunTest(t, "testdata/texts", func(t *testing.T, td *datadriven.TestData) string {
		d, r := example()
		switch td.Cmd {
		case "report":
			var indented strings.Builder
			enc := json.NewEncoder(&indented)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", " ")
			if err := enc.Encode(json.RawMessage(document.Report(r))); err != nil {
				t.Fatal(err)
			}
			return indented.String()
		case "unknown":
			r.Input = &strategy.InputNeeds{RowsPerStep: 8, RowsPerSecond: -1, Processes: 1, ProcessRows: 8}
			_, report, _ := strings.Cut(string(document.Report(r)), `"input":`)
			_, text, _ := strings.Cut(document.Text(d, r), "Input of")
			return report + "\n" + text
		case "nothing":
			r = &strategy.Report{Devices: 1, Best: -1, Model: strategy.ModelSummary{GigaFLOPsPerStep: -1}}
			d.Model.Preset = ""
			d.Training, d.Cluster.Device = strategy.Training{Tokens: 1}, ""
			return string(document.Report(r)) + "\n" + document.Text(d, r)
		case "advise":
			parsed, err := document.Parse([]byte(td.Input))
			if err == nil {
				d = parsed
				r, err = strategy.Advise(d)
			}
			if err != nil {
				return err.Error() + "\n"
			}
		}
		text := document.Text(d, r)
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > document.Columns {
				t.Errorf("a line has %d columns: %s", n, line)
			}
		}
		return text
	})
}
