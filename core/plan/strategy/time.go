package strategy

import (
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// operations returns the floating-point operations of a device in a stage for one
// micro-batch. needed excludes recomputation, and again is what recomputation adds.
func (e *evaluator) operations(g *stage) (needed, again float64) {
	if e.model.shape == nil {
		return float64(3 * float64(e.model.forward) * float64(e.micro)), 0
	}
	f := e.computed
	tokens := float64(e.tokens()) / float64(e.sizes[tensorAxis]) // exact, because activations have less than 2^53 bytes
	scores := float64(f.Attention) * float64(g.layers())
	layers := float64(float64(f.Dense)*float64(g.dense)) + float64(float64(f.Expert)*float64(g.experts)) + scores
	head := 0.0
	if g.head {
		head = float64(f.Head)
	}
	needed = 3 * (layers + head) * tokens
	switch e.recompute {
	case transformer.FullRecomputation:
		again = layers * tokens
	case transformer.SelectiveRecomputation, transformer.DotsRecomputation:
		again = scores * tokens
	}
	return needed, again
}

// idleTime returns the idle time of the slowest stage. The unit is the time of one
// micro-batch in this stage. For equal stages it is p-1 with GPipe and 1F1B, (p-1)/v with
// v chunks, and (p-1)(F+B-W)/(F+B+W) with zero-bubble schedules [package pipeline].
func (e *evaluator) idleTime(slowest float64, stages []stage) float64 {
	if e.sizes[pipeAxis] == 1 || slowest == 0 {
		return 0
	}
	sum := 0.0
	for i := range stages {
		needed, again := e.operations(&stages[i])
		sum += float64((needed + again) * float64(stages[i].equal))
	}
	rest := max(0, sum/slowest-1)
	missing := float64(max(0, e.sizes[pipeAxis]-e.micros)) // micro-batches; with fewer than stages, their gradients of weights cannot fill all idle time
	switch {
	case e.kind == pipeline.Interleaved:
		return rest / float64(e.chunks)
	case e.kind == pipeline.ZeroBubble && e.full():
		return rest/2 + missing/4 // relative times: F 1, B 2 with the second forward pass, W 1
	case e.kind == pipeline.ZeroBubble:
		return (rest + missing) / 3
	}
	return rest
}

// weightTraffic returns the bytes of memory traffic of a stage per micro-batch that do not
// depend on its size: reading the weights in each pass, and accumulating gradients.
func (e *evaluator) weightTraffic(g *stage) int64 {
	b := e.sum(g)
	weights := max(amount.Sum(b.shared.Weights, b.experts.Weights), b.gather)
	return amount.Sum(amount.Product(e.forwards()+1, weights), amount.Product(2, amount.Sum(b.shared.Gradients, b.experts.Gradients)))
}

// optimizerTraffic returns the bytes of memory traffic of the optimizer's update, in the stage
// with the most gradients. The update reads and writes states and weights, and reads
// gradients. With ZeRO, each replica updates its part.
func (e *evaluator) optimizerTraffic() int64 {
	shared, experts := int64(1), int64(1)
	if e.zero > 0 {
		shared, experts = e.sizes.replicas(), e.sizes.expertReplicas()
	}
	return amount.Sum(updateTraffic(&e.heaviest.shared, shared), updateTraffic(&e.heaviest.experts, experts))
}

// updateTraffic returns the bytes that a device reads and writes if it updates its part
// of the arrays: what it holds of them, divided by the replicas that share the work.
func updateTraffic(b *memory.Bytes, replicas int64) int64 {
	written := amount.Sum(ceil(b.Optimizer, replicas), ceil(b.Weights, replicas))
	return amount.Sum(amount.Product(2, written), ceil(b.Gradients, replicas))
}

// spans has times of communication by axis, as the field part of a call names it.
type spans struct {
	each [numAxes]span // for each micro-batch
	once [numAxes]span // once per step
}

// communication returns the sum of the times of calls, by axis.
func (e *evaluator) communication(calls []call) communicationTimes {
	t := communicationTimes{computed: true, known: true}
	for i := range calls {
		c := &calls[i]
		r := e.rate(c.over, c.op)
		if !r.known {
			return communicationTimes{computed: true}
		}
		to := &t.each[c.part]
		if c.once {
			to = &t.once[c.part]
		}
		to.add(r.time(c.bytes), float64(c.count))
	}
	return t
}

// communicate computes the communication of the current candidate. Candidates of a mesh
// with the same stage of ZeRO share the sums of gradients. Those with the same
// micro-batches and recomputation share the rest.
func (e *evaluator) communicate() (s spans, known bool) {
	if !e.otherTimes.computed {
		e.slow, e.flops = e.slowest(e.stages)
		e.idle = e.idleTime(e.flops, e.stages)
		e.otherTimes = e.communication(e.listCalls(e.slow))
	}
	d := &e.gradientTimes[e.zero]
	if !d.computed {
		*d = e.communication(e.listGradientCalls())
	}
	s = e.otherTimes.spans
	for a := range numAxes {
		// Only the backward pass of the last micro-batch can overlap with its sums.
		s.each[a].add(d.each[a], 1-1/float64(e.micros))
		s.once[a].add(d.each[a], 1)
		s.once[a].add(d.once[a], 1)
	}
	return s, e.otherTimes.known && d.known
}

// time returns the time of a step, or false if a number of the hardware is missing.
func (e *evaluator) time() (Time, bool) {
	p := e.planner
	if p.peak == 0 || e.model.forward < 0 || e.unknownAxis() >= 0 {
		return Time{}, false
	}
	s, known := e.communicate()
	if !known {
		return Time{}, false
	}
	w := work{micros: float64(e.micros), idle: e.idle, computing: 1e9 * e.flops / p.peak}
	if hbm := float64(p.cluster.HBM); hbm > 0 {
		w.reading = float64(e.weightTraffic(e.slow)) / hbm * 1e9
		w.update = float64(e.optimizerTraffic()) / hbm * 1e9
	}
	return e.compose(&w, &s), true
}

// slowest returns the stage with the most operations, and their number for one
// micro-batch.
func (e *evaluator) slowest(stages []stage) (*stage, float64) {
	slow, most := &stages[0], -1.0
	for i := range stages {
		if needed, again := e.operations(&stages[i]); needed+again > most {
			slow, most = &stages[i], needed+again
		}
	}
	return slow, most
}

// work has times of the slowest stage in nanoseconds. Times are for one micro-batch,
// unless a comment says "of a step".
type work struct {
	micros            float64 // their number in a step
	idle              float64 // idle time of the pipeline, in times of a micro-batch
	computing         float64 // computation
	reading           float64 // memory traffic that overlaps with computation
	overlapped        float64 // communication that overlaps with computation
	longestOverlapped float64 // the longest of the axes that overlapped adds up
	blocking          float64 // communication that computation waits for
	endOverlapped     float64 // end of a step: communication that overlaps with the backward pass of the last micro-batch
	endBlocking       float64 // end of a step: communication after the backward pass, which the update waits for
	update            float64 // end of a step: update of the weights
}

// at returns the work if devices reach a share of their peak, and links a share of their
// bandwidth. In w, computing is the time at the peak, and communication is 0.
func (w work) at(s *spans, overlap *[numAxes]bool, device, link float64) *work {
	w.computing /= device
	for a := range numAxes {
		each, once := s.each[a].at(link), s.once[a].at(link)
		if overlap[a] {
			w.overlapped += each
			w.longestOverlapped = max(w.longestOverlapped, each)
			w.endOverlapped += once
		} else {
			w.blocking += each
			w.endBlocking += once
		}
	}
	return &w
}

// expected returns the idle time of the pipeline in a step, and the time of communication
// that computation hides.
func (w *work) expected() (bubble, hidden float64) {
	busy := max(w.computing, w.reading)
	each := max(busy, w.overlapped) + w.blocking
	bubble = float64(each * w.idle)
	slack := max(0, busy-w.overlapped) * 2 / 3 // two thirds of the time of the last micro-batch's backward pass
	return bubble, float64(w.micros*min(busy, w.overlapped)) + min(slack, w.endOverlapped)
}

// least returns the time of a step with full overlap: of computation and the axes that
// overlap with it, only the longest time counts.
func (w *work) least() float64 {
	each := max(w.computing, w.reading, w.longestOverlapped)
	covered := max(float64(w.micros*each), w.endOverlapped)
	return covered + float64(w.micros*w.blocking) + float64((each+w.blocking)*w.idle) + w.endBlocking + w.update
}

// most returns the time of a step without overlap.
func (w *work) most() float64 {
	each := max(w.computing, w.reading) + w.overlapped + w.blocking
	return float64((w.micros+w.idle)*each) + w.endOverlapped + w.endBlocking + w.update
}

// compose returns a Time with rounded parts, and with the times of the best and of the
// worst case.
func (e *evaluator) compose(base *work, s *spans) Time {
	p := e.planner
	link := p.linkEfficiency.middle()
	w := base.at(s, &e.overlap, p.efficiency.middle(), link)
	bubble, hidden := w.expected()
	part := func(a axis) int64 {
		return round(float64(s.each[a].at(link)*w.micros) + s.once[a].at(link))
	}
	t := Time{
		Compute: round(w.computing * w.micros), HBM: round(float64(max(0, w.reading-w.computing)*w.micros) + w.update),
		Tensor: part(tensorAxis), FSDP: part(fsdpAxis), Data: part(dataAxis), Context: part(contextAxis), Expert: part(expertAxis), Pipe: part(pipeAxis),
		Bubble: round(bubble), Hidden: round(hidden),
	}
	for _, b := range t.parts() {
		t.Step = amount.Sum(t.Step, b.ns)
	}
	t.Step = max(1, t.Step-t.Hidden)
	t.Low = min(t.Step, round(base.at(s, &e.overlap, p.efficiency[1], p.linkEfficiency[1]).least()))
	t.High = max(t.Step, round(base.at(s, &e.overlap, p.efficiency[0], p.linkEfficiency[0]).most()))
	return t
}

// setRates sets the throughput, the utilization, and the two largest parts of a time.
func (e *evaluator) setRates(t *Time) {
	seconds := float64(t.Step) / 1e9
	examples := float64(e.planner.batch) / seconds
	t.ExamplesPerSecond = round(examples * 1000)
	t.TokensPerSecond = -1
	if e.model.shape != nil {
		t.TokensPerSecond = round(examples * float64(e.model.sequence))
	}
	devices := float64(e.planner.cluster.Devices)
	t.MFU = round(1000 * 3 * float64(e.model.forward) * examples / (e.planner.peak * devices))
	t.Days, t.DeviceHours = -1, -1
	if tokens := e.planner.doc.Training.TotalTokens; tokens > 0 {
		hours := float64(tokens) / float64(e.model.sequence) / examples / 3600
		t.Days, t.DeviceHours = round(hours/24*1000), round(hours*devices*1000)
	}
	parts := t.parts()
	first, second := -1, -1
	for i, x := range parts {
		switch {
		case first < 0 || x.ns > parts[first].ns:
			first, second = i, first
		case second < 0 || x.ns > parts[second].ns:
			second = i
		}
	}
	t.Bound = parts[first].name
	if parts[second].ns > 0 {
		t.Next = parts[second].name
	}
	t.Behind = parts[first].ns - parts[second].ns
}

// timePart is a part of the time, by its name in JSON.
type timePart struct {
	name string
	ns   int64
}

func (t *Time) parts() [9]timePart {
	return [...]timePart{
		{"compute", t.Compute}, {"hbm", t.HBM}, {Tensor, t.Tensor}, {FSDP, t.FSDP}, {Data, t.Data},
		{Context, t.Context}, {Expert, t.Expert}, {Pipe, t.Pipe}, {"bubble", t.Bubble},
	}
}
