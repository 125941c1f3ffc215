package strategy

import (
	"github.com/meshfeed/meshfeed/core/pipeline"
	"github.com/meshfeed/meshfeed/core/transformer"
)

// states returns what a device of a stage keeps whatever the micro-batches.
func (e *evaluator) states(g *stage, zero int) Memory {
	b := e.sum(g)
	dense, experts := e.sizes.product(dataAxis, contextAxis, expertAxis), e.sizes.product(dataAxis, contextAxis)
	m := Memory{Weights: plus(b.shared.Weights, b.experts.Weights), Capacity: e.planner.cluster.Memory, Buffers: e.gathered(g, zero)}
	m.Gradients = plus(b.shared.Gradients, b.experts.Gradients)
	if zero >= 2 {
		m.Gradients = plus(ceil(b.shared.Gradients, dense), ceil(b.experts.Gradients, experts))
	}
	m.Optimizer = plus(b.shared.Optimizer, b.experts.Optimizer)
	if zero >= 1 {
		m.Optimizer = plus(ceil(b.shared.Optimizer, dense), ceil(b.experts.Optimizer, experts))
	}
	for _, n := range [...]int64{m.Weights, m.Gradients, m.Optimizer, m.Buffers} {
		m.Total = plus(m.Total, n)
	}
	return m
}

// memory returns what a device of a stage takes.
func (e *evaluator) memory(g *stage) Memory {
	m, a := e.held[g.index][e.zero], &e.live[g.index]
	m.Activations, m.ActivationsLow, m.ActivationsHigh = a.Paper, a.Low, a.High
	m.Buffers = plus(m.Buffers, e.kept.Working.Paper)
	m.Total = e.total(g)
	if m.Capacity > 0 {
		m.Free = e.planner.capacity - m.Total
	}
	return m
}

// total returns the total of memory.
func (e *evaluator) total(g *stage) int64 {
	return plus(plus(e.held[g.index][e.zero].Total, e.live[g.index].Paper), e.kept.Working.Paper)
}

// inFlight returns how many micro-batches, or chunks of them, a stage keeps at its peak.
func (e *evaluator) inFlight(number int) int {
	pipe := e.sizes[pipeAxis]
	if pipe == 1 {
		return 1
	}
	return pipeline.LiveFormula(e.planner.schedule, number, pipe, e.micros, e.chunks)
}

// activations returns what a stage keeps for its backward pass.
func (e *evaluator) activations(g *stage) transformer.Bytes {
	if e.model.shape == nil {
		n := times(max(e.model.kept, 0), int64(e.micro))
		return transformer.Bytes{Low: n, Paper: n, High: n}
	}
	live, chunks := int64(e.inFlight(g.number)), int64(e.chunks)
	layers := e.kept.Dense.Times(int64(g.dense)).Plus(e.kept.Expert.Times(int64(g.experts))).Times(live)
	sum := transformer.Bytes{Low: ceil(layers.Low, chunks), Paper: ceil(layers.Paper, chunks), High: ceil(layers.High, chunks)}
	if g.embedding {
		sum = sum.Plus(e.kept.Embedding.Times(ceil(live, chunks)))
	}
	if g.head {
		sum = sum.Plus(e.kept.Final.Times(ceil(live, chunks)))
	}
	return sum
}

// gathered returns the bytes of whole weights and gradients for a moment: fsdp has the
// weights of two layers, one in use and one on its way, and the gradients of one. The
// embedding and the head count as one layer. ZeRO stage 2 has the gradients of one
// layer before they are scattered.
func (e *evaluator) gathered(g *stage, zero int) int64 {
	if e.model.shape == nil {
		return 0
	}
	var weights, gradients int64
	for k, n := range g.copies() {
		if n == 0 {
			continue
		}
		b, copies := &e.weights[k], int64(1)
		if kind := blockKind(k); kind == denseBlock || kind == expertBlock {
			copies = min(2, int64(n))
		}
		weights = max(weights, times(b.gather, copies))
		gradients = max(gradients, b.scatter)
		if zero >= 2 {
			gradients = max(gradients, plus(b.shared.Gradients, b.experts.Gradients))
		}
	}
	return plus(weights, gradients)
}
