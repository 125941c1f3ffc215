package transformer_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/tests/golden"
)

// row is a model of testdata/models.json with the numbers that
// tests/python/plan/test_transformer.py compares with XLA's.
type row struct {
	Name       string    `json:"name"`
	Batch      int       `json:"batch"`
	Sequence   int       `json:"sequence"`
	Hidden     int       `json:"hidden"`
	Heads      int       `json:"heads"`
	KVHeads    int       `json:"kv_heads"`
	HeadDim    int       `json:"head_dim"`
	LayerCount int       `json:"layer_count"`
	Vocab      int       `json:"vocab"`
	Every      int       `json:"every"`  // each n-th layer has experts; 0 for none
	Active     int       `json:"active"` // experts that a token is sent to
	Parameters int64     `json:"parameters"`
	Parts      []part    `json:"parts"`
	Layers     []layer   `json:"layers"`
	Shards     []sharded `json:"shards"`
}

type part struct {
	Name   string `json:"name"`
	Shape  []int  `json:"shape"`
	Copies int    `json:"copies"`
	Stage  string `json:"stage"`
	Tensor int    `json:"tensor"`
}

// layer has the bytes of one layer without experts.
type layer struct {
	ElementBytes     int    `json:"element_bytes"`
	Tensor           int    `json:"tensor"`
	SequenceParallel bool   `json:"sequence_parallel"`
	Recomputation    string `json:"recomputation"`
	Low              int64  `json:"low"`
	Paper            int64  `json:"paper"`
	High             int64  `json:"high"`
}

// sharded has the elements of all arrays on one of the tensor devices.
type sharded struct {
	Tensor   int   `json:"tensor"`
	Elements int64 `json:"elements"`
}

// tableModels are models for XLA. Every feature that changes an array or a term is
// in one of them.
var tableModels = []struct {
	name  string
	batch int
	shape transformer.Shape
}{
	{"gelu", 2, transformer.Shape{Layers: 2, Hidden: 128, Heads: 4, FFN: 512, Vocab: 256, Sequence: 128}},
	{"gpt", 4, transformer.Shape{
		Layers: 2, Hidden: 128, Heads: 4, FFN: 512, Vocab: 320, Tied: true, Sequence: 96, Biases: true, Norm: transformer.LayerNorm, Positions: transformer.Learned,
	}},
	{"llama", 4, transformer.Shape{Layers: 2, Hidden: 256, Heads: 8, KVHeads: 4, FFN: 704, Gated: true, Vocab: 512, Sequence: 64}},
	{"gemma", 2, transformer.Shape{Layers: 2, Hidden: 96, Heads: 4, KVHeads: 1, HeadDim: 48, FFN: 384, Gated: true, Vocab: 160, Tied: true, Sequence: 160}},
	{"qwen", 4, transformer.Shape{Layers: 2, Hidden: 128, Heads: 8, KVHeads: 4, FFN: 320, Gated: true, Vocab: 640, Sequence: 96, QKVBiases: true}},
	// Its sizes are multiples of the tiles of TPUs, which pad others.
	{"tiles", 4, transformer.Shape{Layers: 4, Hidden: 256, Heads: 4, HeadDim: 128, FFN: 1024, Vocab: 512, Sequence: 256}},
	{"experts", 2, transformer.Shape{
		Layers: 3, Hidden: 64, Heads: 4, FFN: 192, Gated: true, Vocab: 128, Sequence: 64, Biases: true,
		Experts: &transformer.Experts{Count: 4, Active: 2, Every: 2, FFN: 96, Shared: 1},
	}},
}

func tableRow(t *testing.T, name string, batch int, shape transformer.Shape) row {
	t.Helper()
	s := shape.WithDefaults()
	r := row{
		Name: name, Batch: batch, Sequence: s.Sequence, Hidden: s.Hidden, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
		LayerCount: s.Layers, Vocab: s.Vocab, Parameters: s.Parameters(),
	}
	if s.Experts != nil {
		r.Every, r.Active = s.Experts.Every, s.Experts.Active
	}
	for _, p := range s.Parts() {
		r.Parts = append(r.Parts, part{p.Name, p.Shape, p.Copies, p.Stage.String(), p.Tensor})
	}
	r.layers(t, s, transformer.Execution{Batch: batch, Tensor: 1, ElementBytes: 2})
	for _, tensor := range []int{1, 2, 4} {
		elements := int64(0)
		for _, p := range s.Parts() {
			shape, ok := p.Shard(tensor, 1)
			if !ok {
				t.Fatalf("%s: %s cannot be split over %d devices", name, p.Name, tensor)
			}
			elements += int64(p.Copies) * transformer.Part{Shape: shape}.Elements()
		}
		r.Shards = append(r.Shards, sharded{tensor, elements})
		for _, parallel := range []bool{false, true}[:min(tensor, 2)] {
			r.layers(t, s, transformer.Execution{Batch: batch, Tensor: tensor, SequenceParallel: parallel, ElementBytes: 4})
		}
	}
	return r
}

// layers adds the bytes of a layer with every kind of recomputation.
func (r *row) layers(t *testing.T, s transformer.Shape, e transformer.Execution) {
	t.Helper()
	e.Attention = plain
	for _, e.Recomputation = range []transformer.Recomputation{none, transformer.DotsRecomputation, full} {
		b := activations(t, s, e).Dense
		r.Layers = append(r.Layers, layer{e.ElementBytes, e.Tensor, e.SequenceParallel, string(e.Recomputation), b.Low, b.Paper, b.High})
	}
}

// TestTable compares testdata/models.json with the numbers of this package. The flag
// -rewrite writes the file.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	for i, m := range tableModels {
		out.WriteString([]string{"[", ","}[min(i, 1)] + "\n")
		text, err := json.Marshal(tableRow(t, m.name, m.batch, m.shape))
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	out.WriteString("\n]\n")
	golden.Compare(t, "testdata/models.json", out.String()) // tests/python/plan/test_transformer.py reads it
}
