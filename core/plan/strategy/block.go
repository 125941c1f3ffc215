package strategy

import (
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// blockKind is the kind of a block: a part of the model that no pipeline stage
// boundary divides.
type blockKind int

const (
	tokensBlock    blockKind = iota // the token embedding
	positionsBlock                  // the rest of the embedding
	denseBlock                      // a layer without experts, or a model with unknown layers
	expertBlock                     // a layer with experts
	headBlock                       // the final norm and the head
	numBlocks
)

// block has the bytes that one device holds of one block, and the bytes that it
// communicates.
type block struct {
	shared      memory.Bytes // bytes of arrays that the axis expert replicates
	experts     memory.Bytes // bytes of arrays that the axis expert splits
	gather      int64        // bytes that fsdp gathers
	scatter     int64        // bytes of gradients that fsdp reduces and scatters
	widest      int64        // bytes of the largest array that fsdp gathers, and of its gradient
	fsdpWhole   int64        // bytes of gradients of arrays that fsdp does not split
	sharedHeads int64        // bytes of gradients of key and value heads that several tensor devices hold
	tensorWhole int64        // bytes of gradients of arrays that tensor does not split
}

// blocks has one copy of each block, by its kind.
type blocks [numBlocks]block

// blocksKey has the sizes of the axes that blocks depend on.
type blocksKey struct{ fsdp, expert, tensor int }

// blocks returns, for each block, the sum over its arrays. It returns nil if the axes
// cannot split one of the arrays.
func (m *model) blocks(s sizes) *blocks {
	w := new(blocks)
	for i := range m.parts {
		q := &m.parts[i]
		r, ok := q.shard(s, m.specified)
		if !ok {
			return nil
		}
		for _, k := range q.kinds() {
			w[k].add(q, r)
		}
	}
	return w
}

// kinds lists the kinds of block that include the part.
func (q *part) kinds() []blockKind {
	switch {
	case !q.layered:
		return []blockKind{denseBlock}
	case q.Stage == transformer.EmbeddingStage && q.Name == "embedding/tokens":
		return []blockKind{tokensBlock}
	case q.Stage == transformer.EmbeddingStage:
		return []blockKind{positionsBlock}
	case q.Stage != transformer.LayerStage:
		return []blockKind{headBlock}
	case q.Layers == transformer.DenseLayers:
		return []blockKind{denseBlock}
	case q.Layers == transformer.ExpertLayers:
		return []blockKind{expertBlock}
	}
	return []blockKind{denseBlock, expertBlock}
}

// add adds the bytes of one array. r is the part of it that a device holds.
func (b *block) add(q *part, r shard) {
	to := &b.shared
	if q.Experts {
		to = &b.experts
	}
	to.Weights = amount.Sum(to.Weights, r.bytes.Weights)
	to.Gradients = amount.Sum(to.Gradients, r.bytes.Gradients)
	to.Optimizer = amount.Sum(to.Optimizer, r.bytes.Optimizer)
	switch {
	case r.holders == 1:
	case q.Tensor >= 0:
		b.sharedHeads = amount.Sum(b.sharedHeads, r.bytes.Gradients)
	default:
		b.tensorWhole = amount.Sum(b.tensorWhole, r.bytes.Gradients)
	}
	if r.gathered > 0 {
		gather, scatter := q.gatheredType().Bytes(r.gathered), q.precision.Gradients.Bytes(r.gathered)
		b.gather, b.scatter = amount.Sum(b.gather, gather), amount.Sum(b.scatter, scatter)
		b.widest = max(b.widest, amount.Sum(gather, scatter))
	} else {
		b.fsdpWhole = amount.Sum(b.fsdpWhole, r.bytes.Gradients)
	}
}

// gatheredType returns the element type of the weights that fsdp gathers. It is the type
// of computation, unless that type is larger than the weights or has less than 16 bits.
func (q *part) gatheredType() memory.Element {
	if c := q.precision.Compute.Bits(); c < 16 || c > q.precision.Weights.Bits() {
		return q.precision.Weights
	}
	return q.precision.Compute
}

// plus adds n copies of another block. It leaves out widest, which is read from single
// blocks only.
func (b *block) plus(c *block, n int64) {
	for _, t := range []struct{ to, from *memory.Bytes }{{&b.shared, &c.shared}, {&b.experts, &c.experts}} {
		t.to.Weights = amount.Sum(t.to.Weights, amount.Product(t.from.Weights, n))
		t.to.Gradients = amount.Sum(t.to.Gradients, amount.Product(t.from.Gradients, n))
		t.to.Optimizer = amount.Sum(t.to.Optimizer, amount.Product(t.from.Optimizer, n))
	}
	b.gather = amount.Sum(b.gather, amount.Product(c.gather, n))
	b.scatter = amount.Sum(b.scatter, amount.Product(c.scatter, n))
	b.fsdpWhole = amount.Sum(b.fsdpWhole, amount.Product(c.fsdpWhole, n))
	b.sharedHeads = amount.Sum(b.sharedHeads, amount.Product(c.sharedHeads, n))
	b.tensorWhole = amount.Sum(b.tensorWhole, amount.Product(c.tensorWhole, n))
}
