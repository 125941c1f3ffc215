package transformer

import "github.com/meshfeed/meshfeed/core/plan/internal/amount"

// FLOPs counts floating-point operations of the forward pass for one token. A
// multiplication with an addition counts as two. The backward pass takes twice as
// many, because every matrix product has two derivatives.
type FLOPs struct {
	Dense     int64 // matrix products of one layer without experts
	Expert    int64 // matrix products of one layer with experts: router, active and shared experts
	Attention int64 // scores and weighted values of one layer
	Head      int64 // logits

	denseLayers, expertLayers int64
}

// FLOPs counts the operations of the forward pass for one token. Each matrix takes two per
// parameter. The scores take 4·s·a·d per layer, as Narayanan et al. (arXiv 2104.04473,
// appendix) and PaLM (arXiv 2204.02311, appendix B) count: also scores that a causal mask
// removes. Norms, biases, softmax and the lookup of embeddings do not count.
func (s Shape) FLOPs() FLOPs {
	s = s.WithDefaults()
	return s.count(1000)
}

// Computed counts the operations that tensor devices carry out together for one token.
// Some of them do not change the result: several devices may compute the same key and
// value heads, and a vocabulary is padded. An expert with a capacity computes that many
// tokens, even if it receives fewer (Lepikhin et al., arXiv 2006.16668). Flash attention
// skips the half of the scores that a causal mask removes (Dao, arXiv 2307.08691, section
// 3.1); plain attention computes them and masks them afterward. The backward pass of
// flash attention has five products instead of four, because it computes the scores
// again. Attention is the mean over the forward and the backward pass.
func (s Shape) Computed(tensor int, attention Attention) FLOPs {
	s = s.WithDefaults()
	s.KVHeads = int(ceil(int64(s.KVHeads), tensor)) * tensor
	s.Vocab = int(ceil(int64(s.Vocab), tensor)) * tensor
	computed := int64(1000)
	if s.Experts != nil && s.Experts.CapacityThousandths > 0 {
		computed = int64(s.Experts.CapacityThousandths)
	}
	f := s.count(computed)
	if attention != PlainAttention {
		if !s.Unmasked {
			f.Attention /= 2
		}
		f.Attention = amount.Product(f.Attention, 7) / 6
	}
	return f
}

// count counts the operations of a shape with defaults. computed is the number of tokens
// that experts compute, in thousandths of the tokens that are sent to them.
func (s Shape) count(computed int64) FLOPs {
	f := FLOPs{
		Attention: amount.Product(2, int64(s.Sequence), int64(s.Heads), int64(s.query()+s.value())),
		Head:      amount.Product(2, int64(s.Hidden), int64(s.Vocab)),
	}
	f.expertLayers = int64(s.ExpertLayers(0, s.Layers))
	f.denseLayers = int64(s.Layers) - f.expertLayers
	hidden := int64(s.Hidden)
	attention := amount.Product(4, hidden, int64(s.HeadDim), amount.Sum(int64(s.Heads), int64(s.KVHeads)))
	if a := s.Latent; a != nil {
		from, heads := hidden, int64(s.Heads)
		attention = amount.Product(2, hidden, int64(a.KeyValue+a.Rotary))
		if a.Query > 0 {
			attention, from = amount.Sum(attention, amount.Product(2, hidden, int64(a.Query))), int64(a.Query)
		}
		attention = amount.Sum(attention, amount.Product(2, from, heads, int64(s.query())), amount.Product(2, int64(a.KeyValue), heads, int64(s.HeadDim+a.Value)), amount.Product(2, heads, int64(a.Value), hidden))
	}
	matrices := int64(2)
	if s.Gated {
		matrices = 3
	}
	f.Dense = amount.Sum(attention, amount.Product(2, matrices, hidden, int64(s.FFN)))
	if e := s.Experts; e != nil {
		expert := amount.Product(2, matrices, hidden, int64(e.FFN))
		routed := amount.Product(expert, int64(e.Active), computed) / 1000
		f.Expert = amount.Sum(attention, amount.Product(2, hidden, int64(e.Count)), routed, amount.Product(expert, int64(e.Shared)))
	}
	return f
}

// Layers returns the operations of the forward pass of all layers for one token.
func (f FLOPs) Layers() int64 { return amount.Sum(f.layers(), f.attention()) }

// layers returns the matrix products of all layers.
func (f FLOPs) layers() int64 {
	return amount.Sum(amount.Product(f.denseLayers, f.Dense), amount.Product(f.expertLayers, f.Expert))
}

func (f FLOPs) attention() int64 { return amount.Product(f.denseLayers+f.expertLayers, f.Attention) }

// Forward returns the operations of the forward pass of the whole model for one
// token.
func (f FLOPs) Forward() int64 { return amount.Sum(f.Layers(), f.Head) }

// Step returns the operations of a training step for one token: forward, backward,
// and what is computed again. Full recomputation runs every layer forward once more,
// and selective recomputation its scores.
func (f FLOPs) Step(r Recomputation) int64 {
	step := amount.Product(3, f.Forward())
	switch r {
	case FullRecomputation:
		return amount.Sum(step, f.Layers())
	case SelectiveRecomputation:
		return amount.Sum(step, f.attention())
	}
	return step
}
