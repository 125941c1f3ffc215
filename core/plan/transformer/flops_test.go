package transformer_test

import (
	"math/big"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

const (
	none      = transformer.NoRecomputation
	selective = transformer.SelectiveRecomputation
	full      = transformer.FullRecomputation
)

// ratio returns 1 + the sum of the fractions, each a numerator and a denominator.
func ratio(fractions ...int64) *big.Rat {
	sum := big.NewRat(1, 1)
	for i := 0; i < len(fractions); i += 2 {
		sum.Add(sum, big.NewRat(fractions[i], fractions[i+1]))
	}
	return sum
}

// equal reports whether n·tokens is factor·ratio.
func equal(n, tokens int64, factor []int64, r *big.Rat) bool {
	want := new(big.Rat).Set(r)
	for _, f := range factor {
		want.Mul(want, big.NewRat(f, 1))
	}
	return new(big.Rat).Mul(big.NewRat(n, 1), big.NewRat(tokens, 1)).Cmp(want) == 0
}

// TestMegatronFLOPs compares with equation 3 of Narayanan et al. (arXiv 2104.04473),
// 96·B·s·l·h²·(1 + s/6h + V/16lh) with full recomputation, and without it with
// equation 7 of Korthikanti et al. (arXiv 2205.05198), 72·B·s·l·h²·(1 + s/6h + V/12lh).
// Both must hold exactly, for a batch of 1,536 examples.
func TestMegatronFLOPs(t *testing.T) {
	const batch, sequence, vocab = 1536, 2048, 51200
	for _, m := range megatron {
		l, h := int64(m.layers), int64(m.hidden)
		f := gpt(m.layers, m.hidden, m.heads, vocab, sequence).FLOPs()
		if !equal(f.Step(full), batch*sequence, []int64{96, batch, sequence, l, h, h}, ratio(sequence, 6*h, vocab, 16*l*h)) {
			t.Errorf("%s: %d FLOPs per token with full recomputation", m.billions, f.Step(full))
		}
		if !equal(f.Step(none), batch*sequence, []int64{72, batch, sequence, l, h, h}, ratio(sequence, 6*h, vocab, 12*l*h)) {
			t.Errorf("%s: %d FLOPs per token", m.billions, f.Step(none))
		}
		// Selective recomputation adds one forward pass of the scores, 4·s·h per layer
		// and token, to 12·s·h. Equation 8 of Korthikanti et al. adds 12·s·h: it counts
		// the scores' forward and backward pass twice.
		if !equal(f.Step(selective), batch*sequence, []int64{72, batch, sequence, l, h, h}, ratio(2*sequence, 9*h, vocab, 12*l*h)) {
			t.Errorf("%s: %d FLOPs per token with selective recomputation", m.billions, f.Step(selective))
		}
	}
}

// TestPaLMFLOPs compares with appendix B of Chowdhery et al. (arXiv 2204.02311):
// 6·N + 12·L·H·Q·T per token. N are the parameters in matrices: the token embedding
// of a tied model is also its head. PaLM 540B has 118 layers, 48 heads of dimension
// 256 with one key and value head, and a gated block of width 4h.
func TestPaLMFLOPs(t *testing.T) {
	s := transformer.Shape{
		Layers: 118, Hidden: 18432, Heads: 48, KVHeads: 1, HeadDim: 256, FFN: 4 * 18432, Gated: true, Vocab: 256000, Tied: true, Sequence: 2048,
	}
	norms := int64(2*118+1) * 18432
	if n := s.Parameters(); n/10_000_000 != 54_035 { // table 1
		t.Errorf("PaLM has %d parameters, published are 540.35 billion", n)
	}
	if got, want := s.FLOPs().Step(none), 6*(s.Parameters()-norms)+12*118*48*256*2048; got != want {
		t.Errorf("%d FLOPs per token, want %d", got, want)
	}
}

// TestFLOPsParts compares the parts of a model with grouped heads and experts with counts
// by hand. Scores that a causal mask removes count.
func TestFLOPsParts(t *testing.T) {
	s := transformer.Shape{
		Layers: 6, Hidden: 8, Heads: 4, KVHeads: 2, HeadDim: 3, FFN: 24, Gated: true, Vocab: 50, Sequence: 16,
		Experts: &transformer.Experts{Count: 6, Active: 2, Every: 3, FFN: 10, Shared: 1},
	}
	f := s.FLOPs()
	projections := int64(2 * (8*12 + 2*8*6 + 12*8))
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"dense layer", f.Dense, projections + 2*3*8*24},
		{"expert layer", f.Expert, projections + 2*8*6 + 3*2*3*8*10},
		{"attention", f.Attention, 4 * 16 * 12},
		{"head", f.Head, 2 * 8 * 50},
		{"forward", f.Forward(), 4*f.Dense + 2*f.Expert + 6*f.Attention + f.Head},
		{"step", f.Step(none), 3 * f.Forward()},
		{"selective", f.Step(selective), 3*f.Forward() + 6*f.Attention},
		{"full", f.Step(full), 4*f.Forward() - f.Head},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d FLOPs, want %d", c.name, c.got, c.want)
		}
	}
}

// TestFLOPsFromParameters compares the matrix products of models with their
// parameters: two per parameter of every matrix that takes part in computing a token.
func TestFLOPsFromParameters(t *testing.T) {
	for _, p := range transformer.Presets() {
		matrices := int64(0)
		for _, part := range p.Shape.Parts() {
			switch {
			case len(part.Shape) < 2 || part.Stage == transformer.EmbeddingStage:
			case part.Experts && len(part.Shape) == 3:
				matrices += int64(part.Copies) * part.Elements() / int64(part.Shape[0]) * int64(p.Shape.Experts.Active)
			default:
				matrices += int64(part.Copies) * part.Elements()
			}
		}
		f := p.Shape.FLOPs()
		if p.Shape.Tied {
			matrices += int64(p.Shape.Vocab) * int64(p.Shape.Hidden)
		}
		if got := f.Forward() - int64(p.Shape.Layers)*f.Attention; got != 2*matrices {
			t.Errorf("%s: %d FLOPs in matrix products, want %d", p.Name, got, 2*matrices)
		}
	}
}

// TestComputed compares operations that do not change the result with counts by hand: 4
// devices compute 4 key and value heads where the model has 2, and 52 logits for 50
// tokens. Experts compute 1.5 tokens for each token that is sent to them, or a half.
func TestComputed(t *testing.T) {
	s := transformer.Shape{
		Layers: 6, Hidden: 8, Heads: 4, KVHeads: 2, HeadDim: 3, FFN: 24, Gated: true, Vocab: 50, Sequence: 16,
		Experts: &transformer.Experts{Count: 6, Active: 2, Every: 3, FFN: 10, Shared: 1},
	}
	const heads, expert = 2 * 2 * 8 * 3, 3 * 2 * 8 * 10
	for _, c := range []struct {
		tensor, capacity    int
		layer, routed, head int64 // beyond FLOPs
	}{
		{1, 0, 0, 0, 0},
		{2, 0, 0, 0, 0},
		{4, 0, 2 * heads, 0, 2 * 8 * 2},
		{1, 1000, 0, 0, 0},
		{1, 1500, 0, expert, 0},
		{4, 1500, 2 * heads, expert, 2 * 8 * 2},
		{1, 500, 0, -expert, 0},
	} {
		s.Experts.CapacityThousandths = c.capacity
		want := s.FLOPs()
		want.Dense += c.layer
		want.Expert += c.layer + c.routed
		want.Head += c.head
		for _, unmasked := range []bool{false, true} {
			s.Unmasked = unmasked
			if got := s.Computed(c.tensor, transformer.PlainAttention); got != want {
				t.Errorf("tensor %d, capacity %d: %+v, want %+v", c.tensor, c.capacity, got, want)
			}
			flash := want
			flash.Attention = 4 * 16 * 12 * 7 / 6
			if !unmasked {
				flash.Attention /= 2
			}
			if got := s.Computed(c.tensor, transformer.FlashAttention); got != flash {
				t.Errorf("flash attention, tensor %d, unmasked %v: %+v, want %+v", c.tensor, unmasked, got, flash)
			}
		}
	}
}
