package memory

import "github.com/meshfeed/meshfeed/core/plan/internal/amount"

// Precision has the element types of a training run. Master is the type of a second copy of
// the weights, or Invalid without a copy.
type Precision struct {
	Compute   Element // type of matrix products and activations
	Weights   Element
	Master    Element
	Gradients Element
	Moments   Element // type of the optimizer's states
}

// MixedPrecision returns the usual precision of large models, which is the default. With
// AdamW it takes 16 bytes per parameter [ZeRO §3.1: Rajbhandari et al., arXiv 1910.02054].
func MixedPrecision() Precision {
	return Precision{Compute: BFloat16, Weights: BFloat16, Master: Float32, Gradients: BFloat16, Moments: Float32}
}

// Bytes has the sizes of a parameter, its gradient and its optimizer states.
type Bytes struct {
	Weights   int64
	Gradients int64
	Optimizer int64 // with the master copy
}

// Total returns the sum.
func (b Bytes) Total() int64 { return amount.Sum(b.Weights, b.Gradients, b.Optimizer) }

// Of returns the sizes of a parameter of this shape, or of the part of it that a
// device holds. It allocates nothing.
func (p Precision) Of(shape []int, o Optimizer) Bytes {
	n := amount.Product(shape...)
	return Bytes{
		Weights:   p.Weights.Bytes(n),
		Gradients: p.Gradients.Bytes(n),
		Optimizer: amount.Sum(p.Master.Bytes(n), p.Moments.Bytes(o.Elements(shape))),
	}
}
