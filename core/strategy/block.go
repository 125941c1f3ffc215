package strategy

import (
	"github.com/meshfeed/meshfeed/core/memory"
	"github.com/meshfeed/meshfeed/core/transformer"
)

// blockKind is the kind of a block: a part of the model that no pipeline stage
// boundary divides.
type blockKind int

const (
	tokensBlock    blockKind = iota // the token embedding
	positionsBlock                  // the rest of the embedding
	denseBlock                      // a layer without experts, or a model whose layers are not known
	expertBlock                     // a layer with experts
	headBlock                       // the final norm and the head
	numBlocks
)

// block has the bytes that one device holds of one block, and that it communicates.
type block struct {
	shared  memory.Bytes // of arrays that the axis expert replicates
	experts memory.Bytes // of arrays that the axis expert splits
	gather  int64        // bytes that fsdp gathers
	scatter int64        // bytes of gradients that fsdp reduces and scatters
	widest  int64        // bytes of the largest array that fsdp gathers, and of its gradient
	left    int64        // bytes of gradients of arrays that fsdp does not split
	heads   int64        // bytes of gradients of key and value heads that several tensor devices hold
	unsplit int64        // bytes of gradients of arrays that tensor does not split
}

// weights has one copy of each block, for given sizes of fsdp, expert and tensor.
type weights [numBlocks]block

// weightsKey is the key of cached weights: they depend on these axis sizes only.
type weightsKey struct{ fsdp, expert, tensor int }

// shards returns, for each block, the sum over its arrays. It returns nil if the axes
// cannot split one of the arrays.
func (m *model) shards(s sizes) *weights {
	w := new(weights)
	for i := range m.parts {
		q := &m.parts[i]
		r, ok := q.shard(s, m.specified)
		if !ok {
			return nil
		}
		for _, k := range q.blocks() {
			w[k].add(q, r)
		}
	}
	return w
}

// blocks lists the blocks that include the part.
func (q *part) blocks() []blockKind {
	switch {
	case !q.layered:
		return []blockKind{denseBlock}
	case q.Stage == transformer.EmbeddingStage && q.Name == "embedding/tokens":
		return []blockKind{tokensBlock}
	case q.Stage == transformer.EmbeddingStage:
		return []blockKind{positionsBlock}
	case q.Stage != transformer.LayerStage:
		return []blockKind{headBlock}
	case q.Every < 0:
		return []blockKind{denseBlock}
	case q.Every > 1 || q.Experts:
		return []blockKind{expertBlock}
	}
	return []blockKind{denseBlock, expertBlock}
}

// add adds one array, of which a device holds r.
func (b *block) add(q *part, r shard) {
	to := &b.shared
	if q.Experts {
		to = &b.experts
	}
	to.Weights = plus(to.Weights, r.bytes.Weights)
	to.Gradients = plus(to.Gradients, r.bytes.Gradients)
	to.Optimizer = plus(to.Optimizer, r.bytes.Optimizer)
	switch {
	case r.holders == 1:
	case q.Tensor >= 0:
		b.heads = plus(b.heads, r.bytes.Gradients)
	default:
		b.unsplit = plus(b.unsplit, r.bytes.Gradients)
	}
	if r.whole > 0 {
		gather, scatter := q.gathered().Bytes(r.whole), q.precision.Gradients.Bytes(r.whole)
		b.gather, b.scatter = plus(b.gather, gather), plus(b.scatter, scatter)
		b.widest = max(b.widest, plus(gather, scatter))
	} else {
		b.left = plus(b.left, r.bytes.Gradients)
	}
}

// gathered returns the element type in which fsdp gathers weights. It is the type of
// computation, unless that type is larger than the weights or has less than 16 bits.
func (q *part) gathered() memory.Element {
	if c := q.precision.Compute.Bits(); c < 16 || c > q.precision.Weights.Bits() {
		return q.precision.Weights
	}
	return q.precision.Compute
}

// plus adds n copies of another block.
func (b *block) plus(c *block, n int64) {
	for _, t := range []struct{ to, from *memory.Bytes }{{&b.shared, &c.shared}, {&b.experts, &c.experts}} {
		t.to.Weights = plus(t.to.Weights, times(t.from.Weights, n))
		t.to.Gradients = plus(t.to.Gradients, times(t.from.Gradients, n))
		t.to.Optimizer = plus(t.to.Optimizer, times(t.from.Optimizer, n))
	}
	b.gather = plus(b.gather, times(c.gather, n))
	b.scatter = plus(b.scatter, times(c.scatter, n))
	b.left = plus(b.left, times(c.left, n))
	b.heads = plus(b.heads, times(c.heads, n))
	b.unsplit = plus(b.unsplit, times(c.unsplit, n))
}
