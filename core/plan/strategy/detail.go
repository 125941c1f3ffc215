package strategy

import (
	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
)

// stageList describes all stages of the current candidate.
func (e *evaluator) stageList() []Stage {
	elements := e.model.elements()
	all := e.model.stages(e.sizes[pipeAxis], e.chunks)
	e.setStages(all)
	e.setActivations()
	list := make([]Stage, len(all))
	for i := range all {
		g := &all[i]
		list[i] = Stage{
			Number: g.number, FirstLayer: g.first, Layers: g.layers(), Embedding: g.embedding, Head: g.head,
			Live: e.inFlight(g.number), Memory: e.memory(g), Compute: -1,
		}
		for k, n := range g.copies() {
			list[i].Parameters += elements[k] * int64(n)
		}
		if p := e.planner; p.peak > 0 && e.model.forward >= 0 {
			needed, again := e.operations(g)
			list[i].Compute = round(1e9 * (needed + again) * float64(e.micros) / (p.peak * p.efficiency.middle()))
		}
	}
	return list
}

// MaxTicks is the longest duration in [Pipeline]. A tick is a hundredth of it.
const MaxTicks = 100

// pipeline describes the pipeline of the current candidate. It returns nil without one, and
// for a model with unknown layers.
func (e *evaluator) pipeline() *Pipeline {
	if e.sizes[pipeAxis] == 1 || e.model.shape == nil {
		return nil
	}
	return &Pipeline{e.kind, e.sizes[pipeAxis], e.micros, e.chunks, e.durations(MaxTicks)}
}

// durations returns how long each chunk of each stage computes, in ticks. The longest
// duration has the given number of ticks. The forward pass is a third of the operations
// that are needed, and each half of the backward pass another third. Recomputation
// precedes the gradient of the inputs.
func (e *evaluator) durations(longest float64) (d pipeline.Durations) {
	var thirds, backwards []float64
	most := 0.0
	for k, g := range e.model.chunkList(e.sizes[pipeAxis], e.chunks) {
		needed, again := e.operations(&g)
		thirds, backwards = append(thirds, needed/3), append(backwards, needed/3+again)
		most = max(most, backwards[k])
	}
	ticks := func(operations float64) int64 { return max(1, round(operations/most*longest)) } // a chunk without layers has the embedding or the head
	for k := range thirds {
		d.Forward = append(d.Forward, ticks(thirds[k]))
		d.Backward = append(d.Backward, ticks(backwards[k]))
		d.Weight = append(d.Weight, ticks(thirds[k]))
	}
	return d
}

// elements returns the number of parameters in one copy of each block.
func (m *model) elements() [numBlocks]int64 {
	var n [numBlocks]int64
	for i := range m.parts {
		for _, k := range m.parts[i].kinds() {
			n[k] = amount.Sum(n[k], m.parts[i].Elements())
		}
	}
	return n
}

// collectives describes the communication of the slowest stage of the current
// candidate in one step.
func (e *evaluator) collectives() []Collective {
	var list []Collective
	slow, _ := e.slowest(e.stages)
	for _, c := range e.listAllCalls(slow) {
		path := e.paths[c.over]
		op := operations[c.op]
		cost := collective.Over(path, op, min(c.bytes, collective.MaxBytes))
		r := Collective{
			Op: string(op), Axis: c.over.String(), What: e.name(c.what), Link: string(path.Tier()), Count: c.count, Bytes: c.bytes,
			Ns: -1, Overlapped: e.overlap[c.part],
		}
		if !c.once {
			r.Count = amount.Product(c.count, int64(e.micros))
		}
		r.Sent = amount.Product(cost.Sent, r.Count)
		if rate := e.rate(c.over, c.op); rate.known {
			r.Ns = round(rate.time(c.bytes).at(e.planner.linkEfficiency.middle()) * float64(r.Count))
		}
		list = append(list, r)
	}
	return list
}

// name describes the data that a call sends. If the layers of the model are not known,
// the description does not name a block.
func (e *evaluator) name(what subject) string {
	switch {
	case e.model.shape != nil || what < weightsOf:
		return subjects[what]
	case what < gradientsOf:
		return subjects[weightsSent]
	}
	return subjects[gradientsSent]
}

// unknownAxis returns an axis of the mesh with unknown communication, or -1. The specs of a
// tree say how its arrays are split, but not which products use them.
func (e *evaluator) unknownAxis() axis {
	if e.model.shape == nil {
		for _, a := range []axis{tensorAxis, expertAxis, contextAxis, pipeAxis} {
			if e.sizes[a] > 1 {
				return a
			}
		}
	}
	return -1
}

// missingNumber says which number is missing for the time of the current candidate, and
// returns its JSON Pointer in the document. Both are "" if no number is missing.
func (e *evaluator) missingNumber() (reason, path string) {
	p := e.planner
	switch {
	case p.peak == 0:
		return "the number of floating-point operations per second in " + string(p.format) + " is missing", "/cluster/flops_per_second"
	case e.model.forward < 0:
		return "the number of floating-point operations of an example is missing", "/model/flops_per_example"
	}
	if a := e.unknownAxis(); a >= 0 {
		return "the specs of a tree do not say what devices exchange over " + a.String(), "/model/tree"
	}
	slow, _ := e.slowest(e.stages)
	for _, c := range e.listAllCalls(slow) {
		if e.rate(c.over, c.op).known {
			continue
		}
		if tier := e.paths[c.over].Tier(); tier == hardware.InNode || tier == hardware.Mixed && !e.paths[c.over].Node.Known() {
			return "the bandwidth inside a node is missing", "/cluster/node_bytes_per_second"
		}
		return "the bandwidth of the network is missing", "/cluster/network_bytes_per_second"
	}
	return "", ""
}
