package transformer_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/tests/random"
)

// randomShape draws a small shape that passes Check.
func randomShape(t *testing.T, r *rand.Rand) transformer.Shape {
	t.Helper()
	flip := func() bool { return r.IntN(2) == 0 }
	kv, group := 1+r.IntN(4), 1+r.IntN(4)
	s := transformer.Shape{
		Layers: 1 + r.IntN(9), Heads: kv * group, FFN: 1 + r.IntN(60), Gated: flip(), Vocab: 1 + r.IntN(99), Tied: flip(), Sequence: 1 + r.IntN(40),
		Biases: flip(), QKVBiases: flip(), Dropout: flip(), Unmasked: flip(),
		Norm: random.One(r, "", transformer.RMSNorm, transformer.LayerNorm), Positions: random.One(r, "", transformer.Rotary, transformer.Learned),
	}
	s.Hidden = s.Heads * (1 + r.IntN(8))
	if flip() {
		s.KVHeads = kv
	}
	if flip() {
		s.HeadDim, s.Hidden = 1+r.IntN(9), 1+r.IntN(50)
	}
	if flip() {
		count := 1 + r.IntN(8)
		s.Experts = &transformer.Experts{
			Count: count, Active: 1 + r.IntN(count), Every: r.IntN(s.Layers + 1), FFN: r.IntN(20), Shared: r.IntN(3), CapacityThousandths: r.IntN(3) * 700,
		}
	}
	if x := s.Experts; x != nil {
		x.After = r.IntN(s.Layers)
		if s.ExpertLayers(0, s.Layers) == 0 {
			x.After = 0
		}
	}
	if flip() {
		s.KVHeads, s.Latent = 0, &transformer.Latent{Query: r.IntN(9), KeyValue: 1 + r.IntN(9), Rotary: 1 + r.IntN(5), Value: r.IntN(7)}
	}
	if err := s.Check(); err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return s
}

func randomExecution(r *rand.Rand) transformer.Execution {
	return transformer.Execution{
		Batch: 1 + r.IntN(5), Tensor: r.IntN(9), Context: r.IntN(5), SequenceParallel: r.IntN(2) == 0, Attention: random.One(r, "", flash, plain),
		Recomputation: random.One(r, "", none, selective, full), ElementBytes: random.One(r, 0, 2, 4),
	}
}

// parameters counts the parameters of a shape without its method Parts.
func parameters(s transformer.Shape) int64 {
	s = s.WithDefaults()
	h, width, pairs := s.Hidden, s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	norm := h
	if s.Norm == transformer.LayerNorm {
		norm = 2 * h
	}
	block := func(f int) int {
		n := 2 * h * f
		if s.Gated {
			n += h * f
		}
		if s.Biases {
			n += f + h
		}
		if s.Biases && s.Gated {
			n += f
		}
		return n
	}
	n := s.Vocab*h + norm
	if !s.Tied {
		n += h * s.Vocab
	}
	if s.Positions == transformer.Learned {
		n += s.Sequence * h
	}
	for layer := range s.Layers {
		n += 2 * norm
		switch l := s.Latent; {
		case l != nil:
			query, pair, from := s.Heads*(s.HeadDim+l.Rotary), s.Heads*(s.HeadDim+l.Value), h
			if l.Query > 0 {
				n += h*l.Query + l.Query
				from = l.Query
			}
			n += from*query + h*(l.KeyValue+l.Rotary) + l.KeyValue + l.KeyValue*pair + s.Heads*l.Value*h
			if s.Biases || s.QKVBiases {
				n += query + pair
			}
		default:
			n += 2*h*width + 2*h*pairs
			if s.Biases || s.QKVBiases {
				n += width + 2*pairs
			}
		}
		if s.Biases {
			n += h
		}
		if e := s.Experts; !hasExperts(s, layer) {
			n += block(s.FFN)
		} else {
			n += h*e.Count + e.Count*block(e.FFN)
			if e.Shared > 0 {
				n += block(e.Shared * e.FFN)
			}
		}
	}
	return int64(n)
}

// hasExperts reports whether a layer, counted from 0, has experts. With Every = 2, these
// are the layers 1, 3, 5 and so on.
func hasExperts(s transformer.Shape, layer int) bool {
	return s.Experts != nil && layer >= s.Experts.After && (layer+1)%max(s.Experts.Every, 1) == 0
}

// hasPart reports whether a layer, counted from 0, has a part.
func hasPart(s transformer.Shape, p transformer.Part, layer int) bool {
	return p.Layers == transformer.EveryLayer || (p.Layers == transformer.ExpertLayers) == hasExperts(s, layer)
}

// TestRandomParts compares the parts of random shapes with their parameters, counts
// their layers, and splits them over devices.
func TestRandomParts(t *testing.T) {
	random.Rounds(t, 300, 20000, func(t *testing.T, r *rand.Rand) {
		s := randomShape(t, r)
		start := r.IntN(s.Layers)
		stop, withExperts := start+r.IntN(s.Layers-start+1), 0
		for layer := start; layer < stop; layer++ {
			if hasExperts(s, layer) {
				withExperts++
			}
		}
		if got := s.ExpertLayers(start, stop); got != withExperts {
			t.Errorf("%+v: layers %d to %d have experts %d times, want %d", s, start, stop, got, withExperts)
		}
		sum := int64(0)
		for _, p := range s.Parts() {
			sum += int64(p.Copies) * p.Elements()
			layers := 0
			for layer := range s.Layers {
				if p.Stage == transformer.LayerStage && hasPart(s, p, layer) {
					layers++
				}
			}
			if p.Stage != transformer.LayerStage {
				layers = 1
			}
			if p.Copies != layers {
				t.Errorf("%+v: %s has %d copies, but is in %d layers", s, p.Name, p.Copies, layers)
			}
			checkShards(t, s, p)
		}
		if want := parameters(s); sum != want || s.Parameters() != want {
			t.Errorf("%+v: %d parameters, the parts have %d, want %d", s, s.Parameters(), sum, want)
		}
		if s.Active() > s.Parameters() {
			t.Errorf("%+v: %d active parameters of %d", s, s.Active(), s.Parameters())
		}
	})
}

// checkShards checks that the shards of a part have all elements. Shards overlap only
// for key and value heads, and have padding only for the vocabulary.
func checkShards(t *testing.T, s transformer.Shape, p transformer.Part) {
	t.Helper()
	for tensor := 1; tensor <= 24; tensor++ {
		for expert := 1; expert <= 8; expert++ {
			shape, ok := p.Shard(tensor, expert)
			if !ok {
				continue
			}
			held := int64(1)
			for i, d := range shape {
				if d < 1 || d > p.Shape[i] {
					t.Fatalf("%+v: %s over %d × %d devices has shape %v of %v", s, p.Name, tensor, expert, shape, p.Shape)
				}
				held *= int64(d)
			}
			if p.Tensor >= 0 {
				held *= int64(tensor)
			}
			if p.Experts {
				held *= int64(expert)
			}
			padded := p.Stage != transformer.LayerStage || tensor > p.Unit
			if held < p.Elements() || held > p.Elements() && !padded {
				t.Fatalf("%+v: %s over %d × %d devices has %d elements of %d", s, p.Name, tensor, expert, held, p.Elements())
			}
		}
	}
}

// counts lists the bytes of activations.
func counts(a *transformer.Activations) []transformer.Bytes {
	return []transformer.Bytes{a.Dense, a.Expert, a.Embedding, a.Final, a.Working}
}

// TestRandomActivations checks that the bytes are sums of their terms, and have their
// bounds in order. They must grow with batch and sequence, and not with sharding.
func TestRandomActivations(t *testing.T) {
	random.Rounds(t, 300, 20000, func(t *testing.T, r *rand.Rand) {
		s, e := randomShape(t, r), randomExecution(r)
		a := activations(t, s, e)
		checkTerms(t, s, a)

		batch, sequence := e, s
		batch.Batch++
		sequence.Sequence++
		compare(t, "a larger batch", a, activations(t, s, batch))
		compare(t, "a longer sequence", a, activations(t, sequence, e))
		tensor, context, parallel := e, e, e
		tensor.Tensor = max(e.Tensor, 1) * (1 + r.IntN(3))
		context.Context = max(e.Context, 1) * (1 + r.IntN(3))
		parallel.SequenceParallel = true
		compare(t, "tensor parallelism", activations(t, s, tensor), a)
		compare(t, "context parallelism", activations(t, s, context), a)
		compare(t, "sequence parallelism", activations(t, s, parallel), a)
	})
}

// checkTerms checks that the bytes of activations are the sums of their terms, and that the
// bounds of each term are in order.
func checkTerms(t *testing.T, s transformer.Shape, a *transformer.Activations) {
	t.Helper()
	sums := map[transformer.Block]transformer.Bytes{}
	for _, term := range a.Terms {
		sums[term.In] = sums[term.In].Plus(term.Bytes)
		if term.Name == "" || term.Reason == "" {
			t.Errorf("%+v: a term has no name or no reason: %+v", s, term)
		}
		if b := term.Bytes; b.Low < 0 || b.Low > b.Paper || b.Paper > b.High {
			t.Errorf("%+v: the bounds of %s are not in order: %v", s, term.Name, b)
		}
	}
	layer := sums[transformer.InLayer]
	var dense, expert transformer.Bytes
	if n := s.ExpertLayers(0, s.Layers); n < s.Layers {
		dense = layer.Plus(sums[transformer.InDense])
	}
	if s.Experts != nil {
		expert = layer.Plus(sums[transformer.InExpert])
	}
	want := []transformer.Bytes{dense, expert, sums[transformer.InEmbedding], sums[transformer.InFinal], sums[transformer.InWorking]}
	for i, b := range counts(a) {
		if b != want[i] {
			t.Errorf("%+v: %v bytes, the terms have %v", s, b, want[i])
		}
	}
}

// compare checks that no number is larger in small than in large.
func compare(t *testing.T, why string, small, large *transformer.Activations) {
	t.Helper()
	for i, b := range counts(small) {
		if c := counts(large)[i]; b.Low > c.Low || b.Paper > c.Paper || b.High > c.High {
			t.Errorf("%s: %v and %v are not in order", why, b, c)
		}
	}
}

// TestRandomSizes draws sizes up to the largest that Check accepts, and compares the
// numbers with results of unbounded integers.
func TestRandomSizes(t *testing.T) {
	random.Rounds(t, 300, 20000, func(t *testing.T, r *rand.Rand) {
		size := func() int { return 1 + int(r.Uint64N(1<<r.IntN(32))) }
		s := transformer.Shape{Layers: size(), Hidden: size(), Heads: size(), HeadDim: size(), FFN: size(), Vocab: size(), Sequence: size()}
		n := func(v int) *big.Int { return big.NewInt(int64(v)) }
		product := func(v ...int) *big.Int {
			p := n(1)
			for _, f := range v {
				p.Mul(p, n(f))
			}
			return p
		}
		total := product(2, s.Vocab, s.Hidden)
		total.Add(total, n(s.Hidden))
		total.Add(total, product(s.Layers, 4, s.Hidden, s.Heads, s.HeadDim))
		total.Add(total, product(s.Layers, 2, s.Hidden, s.FFN))
		total.Add(total, product(s.Layers, 2, s.Hidden))
		forward := product(2, s.Vocab, s.Hidden)
		forward.Add(forward, product(s.Layers, 8, s.Hidden, s.Heads, s.HeadDim))
		forward.Add(forward, product(s.Layers, 4, s.Hidden, s.FFN))
		forward.Add(forward, product(s.Layers, 4, s.Sequence, s.Heads, s.HeadDim))
		limit := big.NewInt(transformer.MaxCount)
		fits := total.Cmp(limit) <= 0 && forward.Cmp(limit) <= 0
		if err := s.Check(); (err == nil) != fits {
			t.Fatalf("%+v: %v parameters, %v FLOPs: %v", s, total, forward, err)
		}
		if fits && (total.Cmp(big.NewInt(s.Parameters())) != 0 || forward.Cmp(big.NewInt(s.FLOPs().Forward())) != 0) {
			t.Errorf("%+v: %d parameters and %d FLOPs, want %v and %v", s, s.Parameters(), s.FLOPs().Forward(), total, forward)
		}
		a, err := s.Activations(transformer.Execution{Batch: size(), Attention: plain})
		if err == nil {
			logits := product(10, s.Vocab, s.Sequence)
			if logits.Cmp(limit) > 0 {
				t.Errorf("%+v: %v bytes of logits pass, but are over the limit", s, logits)
			}
			for _, b := range counts(a) {
				if b.Low < 0 || b.Low > b.Paper || b.Paper > b.High || b.High > transformer.MaxCount {
					t.Errorf("%+v: %v bytes", s, b)
				}
			}
		}
	})
}

// TestRandomDots compares what a layer keeps with recomputation of dots with the least of
// selective recomputation. While the layer is computed again, the rest of a layer without
// recomputation exists too.
func TestRandomDots(t *testing.T) {
	random.Rounds(t, 200, 20000, func(t *testing.T, r *rand.Rand) {
		s, e := randomShape(t, r), randomExecution(r)
		e.Recomputation = selective
		least := activations(t, s, e)
		e.Recomputation = none
		whole := activations(t, s, e)
		e.Recomputation = transformer.DotsRecomputation
		dots := activations(t, s, e)
		for name, b := range map[string][2]transformer.Bytes{"dense": {dots.Dense, least.Dense}, "expert": {dots.Expert, least.Expert}} {
			if kept, low := b[0], b[1].Low; kept != (transformer.Bytes{Low: low, Paper: low, High: low}) {
				t.Fatalf("%+v, %+v: a %s layer keeps %+v, want %d", s, e, name, kept, low)
			}
		}
		kept := max(dots.Dense.Low, dots.Expert.Low)
		if w := dots.Working; kept+w.Paper < max(whole.Dense.Paper, whole.Expert.Paper) || kept+w.High < max(whole.Dense.High, whole.Expert.High) || w.Low != 0 {
			t.Fatalf("%+v, %+v: %d and %+v are less than %+v", s, e, kept, w, whole)
		}
	})
}
