// Package strategies has the golden tests of the strategies in docs/strategies, and
// compares them with arithmetic that uses no code of the planner.
package strategies

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/tests/golden"
)

const folder = "../../docs/strategies"

func names(t *testing.T) (names []string) {
	t.Helper()
	found, err := filepath.Glob(folder + "/*.json")
	if err != nil || len(found) < 8 {
		t.Fatalf("%d strategies, %v: expected at least eight in %s", len(found), err, folder)
	}
	for _, path := range found {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
	}
	return names
}

func advise(t *testing.T, name string) (*strategy.Document, *strategy.Report) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := strategy.Advise(d)
	if err != nil {
		t.Fatal(err)
	}
	return d, r
}

// TestStrategies compares the report of every strategy, as JSON and as text, with the
// files in testdata.
func TestStrategies(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			d, r := advise(t, name)
			golden.CompareJSON(t, "testdata/"+name+".report.json", document.Report(r))
			golden.Compare(t, "testdata/"+name+".txt", document.Text(d, r))
		})
	}
}

// TestEveryGoldenFileHasAStrategy finds golden files of renamed strategies.
func TestEveryGoldenFileHasAStrategy(t *testing.T) {
	var expected []string
	for _, name := range names(t) {
		expected = append(expected, name+".report.json", name+".txt")
	}
	golden.Only(t, "testdata", expected)
}

// best returns the best candidate of a strategy.
func best(t *testing.T, name string) (*strategy.Report, *strategy.Candidate) {
	t.Helper()
	_, r := advise(t, name)
	if r.Best < 0 {
		t.Fatalf("%s: no candidate fits", name)
	}
	return r, &r.Candidates[r.Best]
}

// states returns the bytes of weights, gradients and optimizer.
func states(c *strategy.Candidate) int64 {
	return c.Memory.Weights + c.Memory.Gradients + c.Memory.Optimizer
}

// ResNet-50 has 25,557,032 parameters. In 4 bytes they are the 102 MB that common texts
// name.
func TestResNet(t *testing.T) {
	_, c := best(t, "01-resnet-50-on-8-gpus")
	if fmt.Sprint(c.Mesh) != "[{data 8}]" || c.Memory.Weights != 102_228_128 || c.Memory.Gradients != 102_228_128 {
		t.Errorf("mesh %v, memory %+v", c.Mesh, c.Memory)
	}
}

// GPT-2 of 1.5 billion parameters takes 3 GB of weights in 16 bits, and 24 GB to train
// [Rajbhandari et al., arXiv 1910.02054, section 3].
func TestGPT2(t *testing.T) {
	const parameters = 1_557_611_200
	r, _ := best(t, "02-gpt-2-on-4-gpus")
	if r.Model.Parameters != parameters {
		t.Errorf("%d parameters", r.Model.Parameters)
	}
	for _, c := range r.Candidates {
		if fmt.Sprint(c.Mesh) == "[{data 4}]" && c.ZeRO == 1 {
			if want := int64(2*parameters + 2*parameters + 12*parameters/4); states(&c) != want || c.Memory.Weights != 3_115_222_400 {
				t.Errorf("states %d, want %d; memory %+v", states(&c), want, c.Memory)
			}
			return
		}
	}
	t.Error("no candidate of data parallelism with ZeRO stage 1")
}

// GPT-3 on pipelines of 16 stages with tensor parallelism of 8, by hand: a layer has 12
// h² weights, 13 h biases and norms. Tensor parallelism splits all but the norms
// (4 h) and the biases of the two row-parallel products (2 h).
func TestGPT3(t *testing.T) {
	const h, vocabulary, sequence = 12288, 50264, 2048 // the vocabulary is padded to a multiple of 8
	const layer = 12*h*h/8 + 7*h/8 + 6*h
	const first = 6*layer + vocabulary/8*h + sequence*h
	for _, c := range []struct {
		name       string
		data       int64
		micros     int
		efficiency float64 // m/(m+p-1) for equal stages
	}{
		{"03-gpt-3-on-1024-gpus", 8, 192, 192.0 / 207},
		{"04-gpt-3-on-8192-gpus", 64, 24, 24.0 / 39},
	} {
		r, got := best(t, c.name)
		if r.Model.Parameters != 96*(12*h*h+13*h)+50257*h+sequence*h+2*h {
			t.Errorf("%s: %d parameters", c.name, r.Model.Parameters)
		}
		if got.MicroBatches != c.micros || got.Memory.Weights != 2*first || got.Memory.Gradients != 2*first || got.Memory.Optimizer != 12*first/c.data {
			t.Errorf("%s: %d micro-batches, memory %+v, want weights of %d bytes", c.name, got.MicroBatches, got.Memory, 2*first)
		}
		// The first stage keeps the input of each layer, 2 s·h bytes over 8 devices, for
		// 16 micro-batches. It also keeps the dropout mask of the embedding.
		if want := int64(16 * (6*2*sequence*h/8 + sequence*h/8)); got.Memory.Activations != want {
			t.Errorf("%s: activations of %d bytes, want %d", c.name, got.Memory.Activations, want)
		}
		// The last stage also has the logits, so it is the slowest. It is less idle than
		// with equal stages.
		busy := float64(got.Time.Compute + got.Time.Tensor)
		if efficiency := busy / (busy + float64(got.Time.Bubble)); math.Abs(efficiency-c.efficiency) > 0.02 {
			t.Errorf("%s: efficiency %.3f, for equal stages %.3f", c.name, efficiency, c.efficiency)
		}
	}
}

// The states of Llama 3 8B have 128 GB, so 8 devices of 80 GB hold them only if they are
// split: with stage 2 of ZeRO, 14 of 16 bytes per parameter. The weights alone, 16 GB, fit
// into one device.
func TestLlama3(t *testing.T) {
	const parameters = 8_030_261_248
	r, c := best(t, "05-llama-3-8b-on-8-gpus")
	if r.Model.Parameters != parameters || fmt.Sprint(c.Mesh) != "[{data 8}]" || c.ZeRO != 2 || states(c) != 2*parameters+14*parameters/8 {
		t.Errorf("%d parameters, mesh %v, states %d", r.Model.Parameters, c.Mesh, states(c))
	}
}

// A model of 10^9 parameters with AdamW takes 16 GB before activations, not 12.
func TestAdamW(t *testing.T) {
	for name, fits := range map[string]bool{"06-adamw-1b-on-12-gb": false, "07-adamw-1b-on-24-gb": true} {
		_, r := advise(t, name)
		if c := r.Candidates[0]; c.Fits != fits || c.Memory.Total != 16_000_000_000 || c.Memory.Optimizer != 12_000_000_000 {
			t.Errorf("%s: fits %v, memory %+v", name, c.Fits, c.Memory)
		}
	}
}

// Mixtral 8x7B has 46.7 billion parameters, and a token uses 12.9 billion [Jiang et
// al., arXiv 2401.04088].
func TestMixtral(t *testing.T) {
	r, c := best(t, "08-mixtral-8x7b-on-64-gpus")
	if r.Model.Parameters != 46_702_792_704 || r.Model.ActiveParameters != 12_879_925_248 {
		t.Errorf("%+v", r.Model)
	}
	if c.Memory.Total > 72_000_000_000 {
		t.Errorf("memory %+v", c.Memory)
	}
}

// TestLayouts checks that the loader accepts the layout of every strategy.
func TestLayouts(t *testing.T) {
	planned := 0
	for _, name := range names(t) {
		_, r := advise(t, name)
		if r.Layout == nil {
			continue
		}
		planned++
		l, err := layout.New(r.Layout)
		if err != nil || l.Err() != nil {
			t.Errorf("%s: %v, %v", name, err, l.Err())
		}
	}
	if planned < 6 {
		t.Errorf("%d strategies have a layout, want at least 6", planned)
	}
}
