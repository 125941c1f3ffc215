package strategy

import (
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// evaluator computes memory and time of one candidate after the other. Its methods
// setMesh, setSchedule, setMicroBatch and setRecomputation choose the current candidate, in
// this order, and the field zero is set directly. The other methods compute a number of the
// current candidate. Results that several candidates share are cached.
type evaluator struct {
	setting
	planner *planner
	model   *model
	element int64 // bytes of one element of an activation

	stages        []stage                          // the pipeline stages of the mesh that differ in their blocks
	sums          []block                          // sum of the blocks of each stage
	fixed         [][3]Memory                      // memory of each stage without activations, by the stage of ZeRO
	live          []transformer.Bytes              // activations of each stage: all micro-batches in flight
	blocks        *blocks                          // what a device holds of each block
	computed      transformer.FLOPs                // operations of the forward pass for one token, by the tensor devices together
	heaviest      block                            // the sum of the blocks of the stage with the most gradients
	paths         [numAxes + 1]hardware.Path       // paths of the axes, and of headGroup
	overlap       [numAxes]bool                    // communication runs during computation
	wide          bool                             // fsdp spans more than wideNodes
	rated         [numAxes + 1][numOperations]rate // times of operations over the paths, computed on demand
	hasRate       [numAxes + 1][numOperations]bool // rated has the element
	gradientTimes [3]communicationTimes            // times of sums of gradients, by the stage of ZeRO
	otherTimes    communicationTimes               // times of everything but sums of gradients
	slow          *stage                           // the stage with the most floating-point operations
	flops         float64                          // floating-point operations of slow for one micro-batch
	idle          float64                          // idle time of slow, in micro-batches
	stored        *transformer.Activations         // activations of one layer for one micro-batch
	calls         []call                           // memory that the methods list… use again

	// Caches: results for all candidates so far, by what they depend on.
	allBlocks      map[blocksKey]*blocks
	allStages      map[[2]int][]stage // by the size of pipe and the number of chunks
	allActivations map[activationsKey]*transformer.Activations
}

// setting identifies a candidate.
type setting struct {
	sizes  sizes
	zero   int // stage of ZeRO
	micro  int // examples of a micro-batch
	micros int // micro-batches per step
	schedule
	recompute transformer.Recomputation
}

// activationsKey has what the activations of a layer depend on.
type activationsKey struct {
	tensor, context, micro int
	recompute              transformer.Recomputation
}

// communicationTimes has the times of communication. computed is false before the first
// use. known is false if a bandwidth is missing.
type communicationTimes struct {
	spans
	computed, known bool
}

func newEvaluator(p *planner) *evaluator {
	return &evaluator{
		planner: p, model: p.model, element: int64(p.elementBytes()),
		allBlocks: map[blocksKey]*blocks{}, allStages: map[[2]int][]stage{}, allActivations: map[activationsKey]*transformer.Activations{},
	}
}

// elementBytes returns the bytes of one element of an activation. Types of 8 bits are for
// matrix products only, so activations have 16 bits then.
func (p *planner) elementBytes() int {
	if p.precision.Compute.Bits() >= 32 {
		return 4
	}
	return 2
}

// setMesh makes a mesh the current one. It returns false if the axes cannot split the
// arrays.
func (e *evaluator) setMesh(s sizes) bool {
	key := blocksKey{s[fsdpAxis], s[expertAxis], s[tensorAxis]}
	w, ok := e.allBlocks[key]
	if !ok {
		w = e.model.blocks(s)
		e.allBlocks[key] = w
	}
	if w == nil {
		return false
	}
	e.sizes, e.blocks = s, w
	if e.model.shape != nil {
		e.computed = e.model.shape.Computed(s[tensorAxis], e.planner.attention)
	}
	e.setPaths()
	e.hasRate = [numAxes + 1][numOperations]bool{}
	e.setSchedule(e.planner.schedules(s[pipeAxis])[0])
	return true
}

// setSchedule chooses the schedule of the current mesh.
func (e *evaluator) setSchedule(x schedule) {
	e.schedule, e.gradientTimes = x, [3]communicationTimes{}
	key := [2]int{e.sizes[pipeAxis], x.chunks}
	list, ok := e.allStages[key]
	if !ok {
		list = distinct(e.model.stages(key[0], key[1]))
		e.allStages[key] = list
	}
	e.setStages(list)
}

// setPaths sets the paths of the current mesh. With more tensor devices than key and
// value heads, neighbors on the axis tensor hold the same head.
func (e *evaluator) setPaths() {
	s := e.sizes
	copy(e.paths[:], e.planner.cluster.Axes(s[:]))
	e.overlap = e.planner.overlap
	e.wide = !e.planner.chosen[fsdpAxis] && e.paths[fsdpAxis].Nodes > wideNodes
	e.overlap[fsdpAxis] = e.overlap[fsdpAxis] && !e.wide
	e.paths[headGroup] = hardware.Path{}
	if m := e.model.shape; m != nil && s[tensorAxis] > m.KVHeads {
		split := append(s[:tensorAxis:tensorAxis], m.KVHeads, s[tensorAxis]/m.KVHeads)
		e.paths[headGroup] = e.planner.cluster.Axes(split)[headGroup]
	}
}

// setStages sets the stages of the current mesh, and computes their memory without
// activations.
func (e *evaluator) setStages(list []stage) {
	e.stages, e.sums, e.fixed, e.heaviest = list, e.sums[:0], e.fixed[:0], block{}
	most := int64(-1)
	for i := range list {
		list[i].index = i
		b := list[i].sum(e.blocks)
		e.sums = append(e.sums, b)
		e.fixed = append(e.fixed, [3]Memory{e.states(&list[i], 0), e.states(&list[i], 1), e.states(&list[i], 2)})
		if n := amount.Sum(b.shared.Gradients, b.experts.Gradients); n > most {
			e.heaviest, most = b, n
		}
	}
}

// sum returns the sum of the blocks that a device holds in a stage.
func (e *evaluator) sum(g *stage) *block { return &e.sums[g.index] }

// rate returns the time of an operation over an axis, from the cache if possible.
func (e *evaluator) rate(over axis, op operation) rate {
	if !e.hasRate[over][op] {
		e.hasRate[over][op] = true
		e.rated[over][op] = rateOf(e.paths[over], operations[op])
		if over == fsdpAxis && e.wide {
			e.rated[over][op].perByte *= wideSlowdown
		}
	}
	return e.rated[over][op]
}

// setMicroBatch sets the size and the number of micro-batches. The size must divide the
// examples of a replica.
func (e *evaluator) setMicroBatch(micro int) {
	e.micro, e.micros = micro, int(e.planner.batch/e.sizes.batchParts()/int64(micro))
}

// setRecomputation sets the recomputation, and computes the activations that layers
// store for the backward pass.
func (e *evaluator) setRecomputation(r transformer.Recomputation) error {
	e.recompute = r
	e.otherTimes.computed = false
	if e.model.shape == nil {
		e.stored = &transformer.Activations{}
		e.setActivations()
		return nil
	}
	key := activationsKey{e.sizes[tensorAxis], e.sizes[contextAxis], e.micro, r}
	a, ok := e.allActivations[key]
	if !ok {
		var err error
		a, err = e.model.shape.Activations(transformer.Execution{
			Batch: e.micro, Tensor: key.tensor, Context: key.context, SequenceParallel: e.planner.sequenceParallel,
			Attention: e.planner.attention, Recomputation: r, ElementBytes: int(e.element),
		})
		if err != nil {
			return within(err, "/training/micro_batch")
		}
		e.allActivations[key] = a
	}
	e.stored = a
	e.setActivations()
	return nil
}

// setActivations computes the activations of all stages.
func (e *evaluator) setActivations() {
	e.live = e.live[:0]
	for i := range e.stages {
		e.live = append(e.live, e.activations(&e.stages[i]))
	}
}

// worst returns the memory of the stage that needs the most.
func (e *evaluator) worst() Memory {
	most, bytes := 0, int64(-1)
	for i := range e.stages {
		if n := e.total(&e.stages[i]); n > bytes {
			most, bytes = i, n
		}
	}
	return e.memory(&e.stages[most])
}
