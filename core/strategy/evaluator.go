package strategy

import (
	"github.com/meshfeed/meshfeed/core/hardware"
	"github.com/meshfeed/meshfeed/core/transformer"
)

// evaluator computes memory and time of one candidate after the other. It caches
// results that several candidates share.
type evaluator struct {
	*setting
	planner *planner
	model   *model
	element int64 // bytes of an activation

	stages   []stage             // the distinct pipeline stages of the mesh
	sums     []block             // of each stage: the sum of its blocks
	held     [][3]Memory         // of each stage, by the stage of ZeRO: memory without activations
	live     []transformer.Bytes // of each stage: activations
	weights  *weights
	computed transformer.FLOPs          // per token, by the tensor devices together
	heaviest block                      // the sum of the blocks of the stage with the most gradients
	paths    [numAxes + 1]hardware.Path // of the axes, and of headGroup
	rated    [numAxes + 1][numOperations]rate
	asked    [numAxes + 1][numOperations]bool // the element of rated is computed
	data     [3]traffic                       // of gradients, by the stage of ZeRO
	base     traffic                          // of everything but gradients
	slow     *stage                           // the stage with the most floating-point operations
	flops    float64                          // of slow, for one micro-batch
	filled   float64                          // idle time of slow, in micro-batches
	kept     *transformer.Activations
	calls    []call

	allWeights map[weightsKey]*weights
	allStages  map[int][]stage
	allKept    map[keptKey]*transformer.Activations
}

// setting identifies a candidate.
type setting struct {
	sizes     sizes
	zero      int
	micro     int // examples of a micro-batch
	micros    int // micro-batches per step
	chunks    int // chunks of layers per stage
	recompute transformer.Recomputation
}

// keptKey is the key of cached activations.
type keptKey struct {
	tensor, context, micro int
	recompute              transformer.Recomputation
}

// traffic has the times of communication. computed is false before the first use, and
// known is false if a bandwidth is missing.
type traffic struct {
	spans
	computed, known bool
}

func newEvaluator(p *planner) *evaluator {
	return &evaluator{
		setting: &setting{}, planner: p, model: p.model, element: int64(p.elementBytes()),
		allWeights: map[weightsKey]*weights{}, allStages: map[int][]stage{}, allKept: map[keptKey]*transformer.Activations{},
	}
}

// elementBytes returns the size of an activation. Formats of 8 bits are for matrix
// products only.
func (p *planner) elementBytes() int {
	if p.precision.Compute.Bits() >= 32 {
		return 4
	}
	return 2
}

// enter makes a mesh the current one. It returns false if the axes cannot split the
// arrays.
func (e *evaluator) enter(s sizes) bool {
	key := weightsKey{s[fsdpAxis], s[expertAxis], s[tensorAxis]}
	w, ok := e.allWeights[key]
	if !ok {
		w = e.model.shards(s)
		e.allWeights[key] = w
	}
	if w == nil {
		return false
	}
	e.sizes, e.weights, e.chunks = s, w, 1
	if s[pipeAxis] > 1 {
		e.chunks = e.planner.chunks
	}
	if e.model.shape != nil {
		e.computed = e.model.shape.Computed(s[tensorAxis])
	}
	list, ok := e.allStages[s[pipeAxis]]
	if !ok {
		list = distinct(e.model.stages(s[pipeAxis], e.chunks))
		e.allStages[s[pipeAxis]] = list
	}
	e.connect()
	e.asked, e.data = [numAxes + 1][numOperations]bool{}, [3]traffic{}
	e.use(list)
	return true
}

// connect sets the paths of the current mesh. Neighbors on the axis tensor hold the same
// key and value heads.
func (e *evaluator) connect() {
	s := e.sizes
	copy(e.paths[:], e.planner.cluster.Axes(s[:]))
	e.paths[headGroup] = hardware.Path{}
	if m := e.model.shape; m != nil && s[tensorAxis] > m.KVHeads {
		split := append(s[:tensorAxis:tensorAxis], m.KVHeads, s[tensorAxis]/m.KVHeads)
		e.paths[headGroup] = e.planner.cluster.Axes(split)[headGroup]
	}
}

// use sets the stages of the current mesh, and computes their memory without
// activations.
func (e *evaluator) use(list []stage) {
	e.stages, e.sums, e.held, e.heaviest = list, e.sums[:0], e.held[:0], block{}
	most := int64(-1)
	for i := range list {
		list[i].index = i
		b := list[i].sum(e.weights)
		e.sums = append(e.sums, b)
		e.held = append(e.held, [3]Memory{e.states(&list[i], 0), e.states(&list[i], 1), e.states(&list[i], 2)})
		if n := plus(b.shared.Gradients, b.experts.Gradients); n > most {
			e.heaviest, most = b, n
		}
	}
}

// sum returns the sum of the blocks that a device holds in a stage.
func (e *evaluator) sum(g *stage) *block { return &e.sums[g.index] }

// rate returns the time of an operation over an axis, from the cache if possible.
func (e *evaluator) rate(over axis, op operation) rate {
	if !e.asked[over][op] {
		e.asked[over][op] = true
		e.rated[over][op] = rateOf(e.paths[over], operations[op])
	}
	return e.rated[over][op]
}

// divide sets the size and the number of micro-batches. The size must divide the
// examples of a replica.
func (e *evaluator) divide(micro int) {
	e.micro, e.micros = micro, int(e.planner.batch/e.sizes.replicas()/int64(micro))
}

// keep sets the recomputation, and computes the activations that layers store for the
// backward pass.
func (e *evaluator) keep(r transformer.Recomputation) error {
	e.recompute = r
	e.base.computed = false
	if e.model.shape == nil {
		e.kept = &transformer.Activations{}
		e.hold()
		return nil
	}
	key := keptKey{e.sizes[tensorAxis], e.sizes[contextAxis], e.micro, r}
	a, ok := e.allKept[key]
	if !ok {
		var err error
		a, err = e.model.shape.Activations(transformer.Execution{
			Batch: e.micro, Tensor: key.tensor, Context: key.context, SequenceParallel: e.planner.sequence,
			Attention: e.planner.attention, Recomputation: r, ElementBytes: int(e.element),
		})
		if err != nil {
			return within(err, "/training/micro_batch")
		}
		e.allKept[key] = a
	}
	e.kept = a
	e.hold()
	return nil
}

// hold computes the activations of all stages.
func (e *evaluator) hold() {
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
