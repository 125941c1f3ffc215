// Package transformer counts what a transformer needs before it runs: arrays and
// parameters, floating-point operations per token, and the bytes of activations
// that one layer keeps for the backward pass.
//
// A [Shape] holds the hyper-parameters of a decoder: sizes of the layers, heads,
// the feed-forward block and the vocabulary. Everything else follows from it:
//
//   - [Shape.Parts] lists the arrays, with the dimension that tensor parallelism
//     splits. [Shape.Parameters] and [Shape.Active] are their exact sums.
//   - [Shape.FLOPs] counts operations per token: matrix products, attention
//     scores, and the head.
//   - [Shape.Activations] counts bytes as Korthikanti et al. (arXiv 2205.05198)
//     do, as an interval around the formula of the paper, with a reason for every
//     term.
//
// All counts are integers. The letters in formulas are as in the paper: batch b, sequence
// s, hidden h, heads a, head dimension d, tensor parallel size t. Others are the number of
// key and value heads k, the width of the feed-forward block f, the vocabulary V, and the
// context parallel size c.
package transformer

// Norm is the kind of normalization before attention, before the feed-forward
// block, and at the end.
type Norm string

// The normalizations. RMSNorm is the default.
const (
	RMSNorm   Norm = "rms"   // a scale
	LayerNorm Norm = "layer" // a scale and a bias
)

// Positions is the kind of position encoding.
type Positions string

// The kinds of positions. Rotary is the default.
const (
	Rotary  Positions = "rotary"  // computed, without parameters
	Learned Positions = "learned" // a table with a row for each position
)

// Shape has the hyper-parameters of a decoder-only transformer.
type Shape struct {
	Layers    int
	Hidden    int       // width of the residual stream
	Heads     int       // query heads
	KVHeads   int       // key and value heads; 0 means Heads
	HeadDim   int       // 0 means Hidden / Heads; with Latent, without the rotary part
	Latent    *Latent   // nil unless queries, keys and values come from latent vectors
	FFN       int       // width of the feed-forward block
	Gated     bool      // three matrices in the feed-forward block, as in SwiGLU, instead of two
	Vocab     int       // tokens
	Tied      bool      // the head uses the token embedding
	Sequence  int       // tokens per example
	Biases    bool      // every matrix of a layer has a bias, except routers
	QKVBiases bool      // query, key and value have a bias
	Norm      Norm      // "" means RMSNorm
	Positions Positions // "" means Rotary
	Dropout   bool      // after the embedding, attention scores, attention and feed-forward block
	Unmasked  bool      // attention has no causal mask, so every token sees all others
	Experts   *Experts  // nil for a dense model
}

// Latent is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). A token
// has one latent vector for the keys and values of all heads. All heads share the rotary
// part of a key.
type Latent struct {
	Query    int // width of the latent vector of queries; 0 if they come from the residual stream
	KeyValue int // width of the latent vector of keys and values
	Rotary   int // width of the rotary part of a query and of a key
	Value    int // width of a value; 0 means HeadDim
}

// Experts replaces the feed-forward block of some layers by experts.
type Experts struct {
	Count               int // experts in a layer
	Active              int // experts that the router sends a token to
	Every               int // each n-th layer has experts; 0 means 1, every layer
	After               int // the first layers have none
	FFN                 int // width of one expert; 0 means Shape.FFN
	Shared              int // further experts that process every token
	CapacityThousandths int // the limit of tokens per expert, in thousandths of an even share; 0 means no limit
}

// WithDefaults returns the shape with every default written out.
func (s Shape) WithDefaults() Shape {
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.HeadDim == 0 && s.Heads > 0 {
		s.HeadDim = s.Hidden / s.Heads
	}
	if s.Latent != nil {
		l := *s.Latent
		if l.Value == 0 {
			l.Value = s.HeadDim
		}
		s.Latent = &l
	}
	if s.Norm == "" {
		s.Norm = RMSNorm
	}
	if s.Positions == "" {
		s.Positions = Rotary
	}
	if s.Experts != nil {
		e := *s.Experts
		if e.Every == 0 {
			e.Every = 1
		}
		if e.FFN == 0 {
			e.FFN = s.FFN
		}
		s.Experts = &e
	}
	return s
}

// ExpertLayers counts the layers from start to stop, without stop, that have
// experts.
func (s Shape) ExpertLayers(start, stop int) int {
	if s.Experts == nil {
		return 0
	}
	every, after := max(s.Experts.Every, 1), s.Experts.After
	return max(stop, after)/every - max(start, after)/every
}

// query returns the width of a head's query and key. value returns the width of its value.
func (s Shape) query() int {
	if s.Latent != nil {
		return s.HeadDim + s.Latent.Rotary
	}
	return s.HeadDim
}

func (s Shape) value() int {
	if s.Latent != nil {
		return s.Latent.Value
	}
	return s.HeadDim
}
