package transformer

import (
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Attention is how scores are computed.
type Attention string

// The kinds of attention. FlashAttention is the default.
const (
	FlashAttention Attention = "flash" // scores are never stored; the backward pass computes them again
	PlainAttention Attention = "plain" // the scores of all pairs of tokens are stored
)

// Recomputation says what the backward pass computes again instead of storing it.
type Recomputation string

// The kinds of recomputation. NoRecomputation is the default.
const (
	NoRecomputation        Recomputation = "none"
	SelectiveRecomputation Recomputation = "selective" // scores, softmax and their dropout
	DotsRecomputation      Recomputation = "dots"      // all but the results of matrix products with weights
	FullRecomputation      Recomputation = "full"      // the whole layer from its input
)

// Execution has the settings of one device for one micro-batch.
type Execution struct {
	Batch            int           // examples of the micro-batch
	Tensor           int           // devices that split heads and matrices; 0 means 1
	Context          int           // devices that split the sequence; 0 means 1
	SequenceParallel bool          // the tensor devices split the sequence outside of matrix products
	Attention        Attention     // "" means FlashAttention
	Recomputation    Recomputation // "" means NoRecomputation
	ElementBytes     int           // bytes of an activation, 2 or 4; 0 means 2
}

// Bytes is a number of bytes with bounds. Paper is the formula of the paper, which assumes
// fused kernels. Low leaves out what can be computed again without a matrix product. High
// counts every operand of operations that are not fused, which JAX keeps without
// jax.checkpoint. DotsRecomputation is jax.checkpoint with the policy
// dots_with_no_batch_dims_saveable, which keeps Low of selective recomputation.
type Bytes struct{ Low, Paper, High int64 }

// Plus adds two numbers of bytes.
func (b Bytes) Plus(c Bytes) Bytes {
	return Bytes{amount.Sum(b.Low, c.Low), amount.Sum(b.Paper, c.Paper), amount.Sum(b.High, c.High)}
}

// Times multiplies by a number of layers or micro-batches.
func (b Bytes) Times(n int64) Bytes {
	return Bytes{amount.Product(b.Low, n), amount.Product(b.Paper, n), amount.Product(b.High, n)}
}

// Activations has the bytes that one device keeps for the backward pass of one
// micro-batch.
type Activations struct {
	Dense     Bytes // bytes of one layer without experts, or 0 without such layers
	Expert    Bytes // bytes of one layer with experts, or 0 without such layers
	Embedding Bytes // bytes of the embedding, on the first pipeline stage
	Final     Bytes // bytes of the final norm, the head and the loss, on the last pipeline stage
	Working   Bytes // what the backward pass computes again for a layer; once, because it is freed before the next layer
	Terms     []Term
}

// Term is one summand of Activations.
type Term struct {
	Name   string
	In     Block
	Bytes  Bytes
	Reason string // what is stored, and why Low and High differ from the formula
}

// Block says which part of the model a term belongs to.
type Block uint8

// The blocks.
const (
	InLayer     Block = iota // every layer
	InDense                  // layers without experts
	InExpert                 // layers with experts
	InEmbedding              // the first pipeline stage
	InFinal                  // the last pipeline stage
	InWorking                // once, while the backward pass computes a layer again
)

// Activations counts the bytes that one device keeps for the backward pass of one
// micro-batch. The shape must pass Check.
func (s Shape) Activations(e Execution) (*Activations, error) {
	e = e.withDefaults()
	if err := e.check(); err != nil {
		return nil, err
	}
	c := newCounter(s.WithDefaults(), e)
	c.layers()
	c.embedding()
	c.final()
	a := c.sums()
	for _, b := range []Bytes{a.Dense, a.Expert, a.Embedding, a.Final, a.Working} {
		if b.High > MaxCount {
			return nil, invalid("/training/micro_batch", "a layer keeps more than 2^53 bytes for %d examples of %d tokens", e.Batch, s.Sequence).
				WithHint("use fewer examples, or a shorter sequence")
		}
	}
	return a, nil
}

func (e Execution) withDefaults() Execution {
	if e.Tensor == 0 {
		e.Tensor = 1
	}
	if e.Context == 0 {
		e.Context = 1
	}
	if e.Attention == "" {
		e.Attention = FlashAttention
	}
	if e.Recomputation == "" {
		e.Recomputation = NoRecomputation
	}
	if e.ElementBytes == 0 {
		e.ElementBytes = 2
	}
	return e
}

func (e Execution) check() error {
	for _, n := range []struct {
		path, text string
		value      int
	}{
		{"/training/micro_batch", "a micro-batch has %d examples", e.Batch},
		{"/search/axes/tensor", "axis tensor has size %d", e.Tensor},
		{"/search/axes/context", "axis context has size %d", e.Context},
	} {
		if n.value < 1 || n.value > maxSize {
			return invalid(n.path, n.text+", but must have from 1 to 2^31", n.value).WithHint("use at least 1")
		}
	}
	switch e.Attention {
	case FlashAttention, PlainAttention:
	default:
		return invalid("/training/attention", "%s is not a kind of attention", wording.Quote(string(e.Attention))).WithHint(`write "flash" or "plain"`)
	}
	switch e.Recomputation {
	case NoRecomputation, SelectiveRecomputation, DotsRecomputation, FullRecomputation:
	default:
		return invalid("/training/recomputation", "%s is not a kind of recomputation", wording.Quote(string(e.Recomputation))).
			WithHint(`write "none", "dots", "selective" or "full"`)
	}
	if e.ElementBytes != 2 && e.ElementBytes != 4 {
		return invalid("/training/precision/compute", "an activation has %d bytes, but must have 2 or 4", e.ElementBytes).
			WithHint(`compute in "bfloat16", "float16" or "float32"`)
	}
	return nil
}
