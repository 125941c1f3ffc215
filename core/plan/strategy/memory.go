package strategy

import (
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// states returns the memory of a device in a stage that does not depend on the
// micro-batches: weights, gradients, optimizer states, and buffers of fsdp and ZeRO.
func (e *evaluator) states(g *stage, zero int) Memory {
	b := e.sum(g)
	dense, experts := e.sizes.replicas(), e.sizes.expertReplicas()
	m := Memory{Weights: amount.Sum(b.shared.Weights, b.experts.Weights), Capacity: e.planner.cluster.Memory, Buffers: e.gathered(g, zero)}
	m.Gradients = amount.Sum(b.shared.Gradients, b.experts.Gradients)
	if zero >= 2 {
		m.Gradients = amount.Sum(ceil(b.shared.Gradients, dense), ceil(b.experts.Gradients, experts))
	}
	m.Optimizer = amount.Sum(b.shared.Optimizer, b.experts.Optimizer)
	if zero >= 1 {
		m.Optimizer = amount.Sum(ceil(b.shared.Optimizer, dense), ceil(b.experts.Optimizer, experts))
	}
	for _, n := range [...]int64{m.Weights, m.Gradients, m.Optimizer, m.Buffers} {
		m.Total = amount.Sum(m.Total, n)
	}
	return m
}

// memory returns the memory of a device in a stage, for the current candidate.
func (e *evaluator) memory(g *stage) Memory {
	m, a := e.fixed[g.index][e.zero], &e.live[g.index]
	w := &e.stored.Working // Buffers has its formula; the bounds of Activations include its bounds
	m.Activations, m.ActivationsLow, m.ActivationsHigh = a.Paper, max(0, a.Low+w.Low-w.Paper-e.avoidable(g)), amount.Sum(a.High, w.High-w.Paper)
	m.Buffers = amount.Sum(m.Buffers, w.Paper)
	m.Total = e.total(g)
	if m.Capacity > 0 {
		m.Free = e.planner.capacity - m.Total
	}
	return m
}

// avoidable returns the sum over a stage's activations and buffers, less the least
// memory of the stage. A library may gather one array at a time instead of two layers.
// After the backward pass of the head, the backward pass of a layer can use the memory
// of the logits.
func (e *evaluator) avoidable(g *stage) int64 {
	if e.model.shape == nil {
		return 0
	}
	widest := int64(0)
	for k, n := range g.copies() {
		if n > 0 {
			widest = max(widest, e.blocks[k].widest)
		}
	}
	n := max(0, e.gathered(g, 0)-widest)
	if g.head && e.inFlight(g.number) == 1 {
		n = amount.Sum(n, min(e.stored.Final.Low, e.stored.Working.Low))
	}
	return n
}

// total returns the field Total of memory without computing the other fields.
func (e *evaluator) total(g *stage) int64 {
	return amount.Sum(e.fixed[g.index][e.zero].Total, e.live[g.index].Paper, e.stored.Working.Paper)
}

// inFlight returns the largest number of micro-batches that a stage stores activations of
// at the same time. With an interleaved schedule, it counts chunks of micro-batches.
func (e *evaluator) inFlight(number int) int {
	pipe := e.sizes[pipeAxis]
	if pipe == 1 {
		return 1
	}
	return pipeline.LiveFormula(e.kind, number, pipe, e.micros, e.chunks)
}

// activations returns the bytes of activations that a stage stores for its backward
// passes.
func (e *evaluator) activations(g *stage) transformer.Bytes {
	if e.model.shape == nil {
		n := amount.Product(max(e.model.activationBytes, 0), int64(e.micro))
		return transformer.Bytes{Low: n, Paper: n, High: n}
	}
	live, chunks := int64(e.inFlight(g.number)), int64(e.chunks)
	layers := e.stored.Dense.Times(int64(g.dense)).Plus(e.stored.Expert.Times(int64(g.experts))).Times(live)
	sum := transformer.Bytes{Low: ceil(layers.Low, chunks), Paper: ceil(layers.Paper, chunks), High: ceil(layers.High, chunks)}
	if g.embedding {
		sum = sum.Plus(e.stored.Embedding.Times(ceil(live, chunks)))
	}
	if g.head {
		sum = sum.Plus(e.stored.Final.Times(ceil(live, chunks)))
	}
	return sum
}

// gathered returns the bytes of the buffers for whole weights and gradients. With fsdp, a
// device holds the weights of two layers, because it gathers one layer while it computes
// another, and the gradients of one layer. The embedding and the head count as one layer
// each. With ZeRO stage 2, a device holds the gradients of one layer until they are
// scattered. For a model with unknown layers, it returns 0.
func (e *evaluator) gathered(g *stage, zero int) int64 {
	if e.model.shape == nil {
		return 0
	}
	var weights, gradients int64
	for k, n := range g.copies() {
		if n == 0 {
			continue
		}
		b, copies := &e.blocks[k], int64(1)
		if kind := blockKind(k); kind == denseBlock || kind == expertBlock {
			copies = min(2, int64(n))
		}
		weights = max(weights, amount.Product(b.gather, copies))
		gradients = max(gradients, b.scatter)
		if zero >= 2 {
			gradients = max(gradients, amount.Sum(b.shared.Gradients, b.experts.Gradients))
		}
	}
	return amount.Sum(weights, gradients)
}
