package strategy

import (
	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// call is a collective operation of the slowest pipeline stage. It has no pointers,
// because a search makes many of them.
type call struct {
	op    operation
	over  axis
	part  axis // its field of Time includes the call; dataAxis for sums of gradients over any axis
	what  subject
	count int64 // per micro-batch, or per step if once is set
	bytes int64 // bytes of one call
	once  bool  // once per step
}

// operation is the index of a collective operation in operations.
type operation int

const (
	allGather operation = iota
	reduceScatter
	allReduce
	allToAll
	permute
	numOperations
)

var operations = [numOperations]collective.Op{collective.AllGather, collective.ReduceScatter, collective.AllReduce, collective.AllToAll, collective.Permute}

// subject is what a call sends, as an index in subjects.
type subject int

const (
	activationsSent subject = iota
	keysSent
	keyGradientsSent
	tokensSent
	tiedSent
	headsSent
	unsplitSent
	wholeSent
	gradientsSent
	weightsSent
	weightsOf   // weightsOf + k: the weights of blockKind k; likewise gradientsOf
	gradientsOf = weightsOf + subject(numBlocks)
)

var subjects = [gradientsOf + subject(numBlocks)]string{
	"activations and their gradients", "keys and values", "keys, values and their gradients", "tokens to experts and back",
	"gradients of the tied embedding", "gradients of shared heads", "gradients of unsplit arrays",
	"gradients that fsdp leaves whole", "gradients", "weights",
	"weights of the token embedding", "weights of the positions", "weights of a layer", "weights of a layer with experts", "weights of the head",
	"gradients of the token embedding", "gradients of the positions", "gradients of a layer", "gradients of a layer with experts", "gradients of the head",
}

// rate is the time of an operation over the path of an axis: linear in the bytes.
type rate struct {
	latency, perByte float64 // nanoseconds; the bytes at the full bandwidth of the links
	known            bool
}

// span is a time of communication in nanoseconds.
type span struct {
	latency float64
	sending float64 // at the full bandwidth of the links
}

// at returns the time if the links reach a share of their bandwidth.
func (s span) at(efficiency float64) float64 { return s.latency + s.sending/efficiency }

// add adds n times another span.
func (s *span) add(o span, n float64) {
	s.latency += float64(o.latency * n)
	s.sending += float64(o.sending * n)
}

// measured is the number of bytes that rateOf computes a time for. It is so large that
// the rounding of the time does not matter.
const measured = 1 << 40

// rateOf computes the rate from the times for 0 bytes and for measured bytes.
func rateOf(path hardware.Path, op collective.Op) rate {
	start, end := collective.Over(path, op, 0), collective.Over(path, op, measured)
	if start.Ns == collective.Unknown || end.Ns == collective.Unknown {
		return rate{}
	}
	return rate{float64(start.Ns), float64(end.Ns-start.Ns) / measured, true}
}

// time returns the time of one operation.
func (r rate) time(bytes int64) span { return span{r.latency, r.perByte * float64(bytes)} }

// listCalls lists the collective operations of a device in a stage, except sums of
// gradients over replicas.
func (e *evaluator) listCalls(g *stage) []call {
	e.calls = e.calls[:0]
	if e.model.shape != nil {
		e.tensorCalls(g)
		e.contextCalls(g)
		e.expertCalls(g)
		e.pipeCalls(g)
	}
	e.fsdpCalls(g)
	return e.calls
}

// listGradientCalls lists the collective operations that sum gradients over replicas.
func (e *evaluator) listGradientCalls() []call {
	e.calls = e.calls[:0]
	e.dataCalls()
	return e.calls
}

// listAllCalls lists the calls of listCalls and of listGradientCalls.
func (e *evaluator) listAllCalls(g *stage) []call {
	e.listCalls(g)
	e.dataCalls()
	return e.calls
}

// call appends a call, unless it sends nothing.
func (e *evaluator) call(op operation, over, part axis, what subject, count, bytes int64, once bool) {
	if count > 0 && bytes > 0 && e.paths[over].Size > 1 {
		e.calls = append(e.calls, call{op, over, part, what, count, bytes, once})
	}
}

// tokens returns the tokens of a micro-batch that a device and its neighbors on the axis
// tensor compute: b·s/c, in the letters of package transformer.
func (e *evaluator) tokens() int64 {
	return amount.Product(int64(e.micro), ceil(e.model.sequence, int64(e.sizes[contextAxis])))
}

// stream returns the bytes of one array of the residual stream for these tokens: b·s·h/c
// elements.
func (e *evaluator) stream() int64 {
	return amount.Product(e.tokens(), int64(e.model.shape.Hidden), e.element)
}

// full reports whether full recomputation runs the forward pass twice.
func (e *evaluator) full() bool { return e.recompute == transformer.FullRecomputation }

// forwards returns how many times the forward pass runs.
func (e *evaluator) forwards() int64 {
	if e.full() {
		return 2
	}
	return 1
}

// tensorCalls lists two all-reduces of the stream in each pass of a layer [Shoeybi et al.,
// arXiv 1909.08053, section 3]. With sequence parallelism each is an all-gather and a
// reduce-scatter of the same bytes [Korthikanti et al., arXiv 2205.05198, section 4.2.2].
// The embedding and the head have one each. Devices that hold the same key and value
// heads add up the gradients of these heads. With sequence parallelism, each device
// computes gradients for other tokens. So all devices add up the gradients of arrays
// that tensor does not split.
func (e *evaluator) tensorCalls(g *stage) {
	n := int64(g.layers()) * (2*e.forwards() + 2)
	if g.embedding {
		n++
	}
	if g.head {
		n++
	}
	b := e.sum(g)
	e.call(allReduce, headGroup, tensorAxis, headsSent, 1, b.sharedHeads, true)
	if !e.planner.sequenceParallel {
		e.call(allReduce, tensorAxis, tensorAxis, activationsSent, n, e.stream(), false)
		return
	}
	e.call(allReduce, tensorAxis, tensorAxis, unsplitSent, 1, b.tensorWhole, true)
	e.call(allGather, tensorAxis, tensorAxis, activationsSent, n, e.stream(), false)
	e.call(reduceScatter, tensorAxis, tensorAxis, activationsSent, n, e.stream(), false)
}

// contextCalls lists the ring of attention: keys and values pass all devices in the
// forward pass, and again with their gradients in the backward pass [Liu et al., arXiv
// 2310.01889].
func (e *evaluator) contextCalls(g *stage) {
	s, c := e.model.shape, int64(e.sizes[contextAxis])
	heads := ceil(int64(s.KVHeads), int64(e.sizes[tensorAxis]))
	width := int64(2 * s.HeadDim)
	if l := s.Latent; l != nil {
		width += int64(l.Rotary + l.Value - s.HeadDim)
	}
	block := amount.Product(e.element, e.tokens(), heads*width)
	n := int64(g.layers()) * (c - 1)
	e.call(permute, contextAxis, contextAxis, keysSent, n*e.forwards(), block, false)
	e.call(permute, contextAxis, contextAxis, keyGradientsSent, n, 2*block, false)
}

// expertCalls lists the exchange of tokens before and after the experts, in both
// passes [Lepikhin et al., arXiv 2006.16668, section 3.2].
func (e *evaluator) expertCalls(g *stage) {
	x := e.model.shape.Experts
	if x == nil {
		return
	}
	rows := amount.Product(e.stream(), int64(x.Active))
	if c := int64(x.CapacityThousandths); c > 0 {
		rows = share(rows, c, 1000)
	}
	if e.planner.sequenceParallel {
		rows = ceil(rows, int64(e.sizes[tensorAxis]))
	}
	n := 2*e.forwards() + 2
	if e.recompute == transformer.DotsRecomputation {
		n++ // the tokens that experts get are not the result of a product
	}
	e.call(allToAll, expertAxis, expertAxis, tokensSent, int64(g.experts)*n, rows, false)
}

// pipeCalls lists the messages to the next and the previous stage. If the embedding is
// tied, the first and the last stage exchange its gradients
// [Narayanan et al., arXiv 2104.04473].
func (e *evaluator) pipeCalls(g *stage) {
	bytes := e.stream()
	if e.planner.sequenceParallel {
		bytes = ceil(bytes, int64(e.sizes[tensorAxis]))
	}
	e.call(permute, pipeAxis, pipeAxis, activationsSent, 2*int64(e.chunks), bytes, false)
	if e.model.shape.Tied {
		e.call(permute, pipeAxis, pipeAxis, tiedSent, 1, e.blocks[tokensBlock].shared.Gradients, true)
	}
}

// fsdpCalls lists what fsdp gathers and scatters for every micro-batch: weights in
// both passes, then gradients [Rajbhandari et al., arXiv 1910.02054, section 7.2.2].
// The backward pass of a lookup needs no weights, so an embedding is gathered once, unless
// the head uses it too. Arrays that fsdp leaves whole are reduced once.
func (e *evaluator) fsdpCalls(g *stage) {
	left := int64(0)
	for k, n := range g.copies() {
		b := &e.blocks[k]
		passes := int64(2)
		if kind := blockKind(k); kind == positionsBlock || kind == tokensBlock && !(g.head && e.model.shape.Tied) {
			passes = 1
		}
		e.call(allGather, fsdpAxis, fsdpAxis, weightsOf+subject(k), passes*int64(n), b.gather, false)
		e.call(reduceScatter, fsdpAxis, fsdpAxis, gradientsOf+subject(k), int64(n), b.scatter, false)
		left = amount.Sum(left, amount.Product(b.fsdpWhole, int64(n)))
	}
	e.call(allReduce, fsdpAxis, dataAxis, wholeSent, 1, left, true)
}

// dataCalls lists the calls that sum gradients over the replicas of the weights, for the
// stage with the most gradients. Over several axes, each inner axis has a reduce-scatter
// and afterward an all-gather. Between them, the outermost axis has an all-reduce. ZeRO
// needs the reduce-scatter of the gradients and the all-gather of the weights. Stage 2
// keeps no whole gradients, so it scatters them for every micro-batch
// [Rajbhandari et al., arXiv 1910.02054, section 7.2.1].
func (e *evaluator) dataCalls() {
	b := e.heaviest
	inner := [...]struct {
		a       axis
		experts bool // the arrays of experts are replicated over the axis
	}{{contextAxis, true}, {expertAxis, false}}
	gradients, expertGradients := b.shared.Gradients, b.experts.Gradients
	weights, expertWeights := b.shared.Weights, b.experts.Weights
	last := e.sizes[dataAxis] == 1
	for i, x := range inner {
		n := int64(e.sizes[x.a])
		if n == 1 {
			continue
		}
		g, w := gradients, weights
		if x.experts {
			g, w = amount.Sum(g, expertGradients), amount.Sum(w, expertWeights)
		}
		outermost := last && (i == len(inner)-1 || e.sizes[inner[i+1].a] == 1)
		e.replicaCalls(x.a, g, w, outermost)
		gradients, weights = ceil(gradients, n), ceil(weights, n)
		if x.experts {
			expertGradients, expertWeights = ceil(expertGradients, n), ceil(expertWeights, n)
		}
	}
	e.replicaCalls(dataAxis, amount.Sum(gradients, expertGradients), amount.Sum(weights, expertWeights), true)
}

// replicaCalls lists the calls of dataCalls over one axis. outermost says that no axis of
// replicas is outside of it.
func (e *evaluator) replicaCalls(over axis, gradients, weights int64, outermost bool) {
	switch {
	case e.zero == 0 && outermost:
		e.call(allReduce, over, dataAxis, gradientsSent, 1, gradients, true)
	case e.zero == 0:
		e.call(reduceScatter, over, dataAxis, gradientsSent, 1, gradients, true)
		e.call(allGather, over, dataAxis, gradientsSent, 1, gradients, true)
	default:
		e.call(reduceScatter, over, dataAxis, gradientsSent, 1, gradients, e.zero == 1)
		e.call(allGather, over, dataAxis, weightsSent, 1, weights, true)
	}
}
