package transformer

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

// FLOPs counts the operations of the forward pass for one token. Each matrix takes
// two per parameter. The scores take 4·s·a·d per layer, as Narayanan et al. (arXiv
// 2104.04473, appendix) and PaLM (arXiv 2204.02311, appendix B) count, or half of it
// if only the scores below a causal mask count. Norms, biases, softmax and the
// lookup of embeddings do not count.
func (s Shape) FLOPs() FLOPs {
	s = s.WithDefaults()
	f := FLOPs{
		Attention: mul(4, int64(s.Sequence), int64(s.Heads), int64(s.HeadDim)),
		Head:      mul(2, int64(s.Hidden), int64(s.Vocab)),
	}
	if s.Causal {
		f.Attention /= 2
	}
	f.expertLayers = int64(s.ExpertLayers(0, s.Layers))
	f.denseLayers = int64(s.Layers) - f.expertLayers
	hidden := int64(s.Hidden)
	attention := mul(4, hidden, int64(s.HeadDim), add(int64(s.Heads), int64(s.KVHeads)))
	matrices := int64(2)
	if s.Gated {
		matrices = 3
	}
	f.Dense = add(attention, mul(2, matrices, hidden, int64(s.FFN)))
	if e := s.Experts; e != nil {
		visited := add(int64(e.Active), int64(e.Shared))
		f.Expert = add(attention, mul(2, hidden, int64(e.Count)), mul(2, matrices, hidden, int64(e.FFN), visited))
	}
	return f
}

// layers returns the matrix products of all layers.
func (f FLOPs) layers() int64 {
	return add(mul(f.denseLayers, f.Dense), mul(f.expertLayers, f.Expert))
}

func (f FLOPs) attention() int64 { return mul(f.denseLayers+f.expertLayers, f.Attention) }

// Forward returns the operations of the forward pass of the whole model for one
// token.
func (f FLOPs) Forward() int64 { return add(f.layers(), f.attention(), f.Head) }

// Step returns the operations of a training step for one token: forward, backward,
// and what is computed again. Full recomputation runs every layer forward once more,
// and selective recomputation its scores.
func (f FLOPs) Step(r Recomputation) int64 {
	step := mul(3, f.Forward())
	switch r {
	case FullRecomputation:
		return add(step, f.layers(), f.attention())
	case SelectiveRecomputation:
		return add(step, f.attention())
	}
	return step
}
