package strategy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
)

// evidence records which features the candidates of a report use. The report lists the
// assumptions about these features only.
type evidence struct {
	*planner
	used      [numAxes]bool
	times     bool            // some candidate has a time
	zero      [3]bool         // by the stage of ZeRO
	full      bool            // some candidate uses full recomputation
	selective bool            // some candidate uses selective recomputation
	dots      bool            // some candidate keeps the results of matrix products only
	kinds     []pipeline.Kind // schedules that candidates use; they replace the schedules to try
	wide      bool            // fsdp of some candidate spans more than wideNodes
	shared    bool            // some tensor devices hold the same key and value heads
	uneven    bool            // some pipeline stage has more layers than another
	padded    bool            // the vocabulary is not a multiple of a tensor axis
	layout    bool            // the report has a layout
	undivided int64           // for a candidate with ZeRO, the most thousandths of the weights that specs of JAX cannot split over the replicas
}

func (p *planner) assumptions(kept []score, r *Report) []Assumption {
	e := evidence{planner: p, layout: r.Layout != nil}
	for i := range kept {
		c := &kept[i]
		for a, n := range c.sizes {
			e.used[a] = e.used[a] || n > 1
		}
		e.times = e.times || r.Candidates[i].Time != nil
		if e.zero[c.zero] = true; c.zero > 0 {
			e.undivided = max(e.undivided, p.model.undivided(c.sizes))
		}
		e.full = e.full || c.recompute == transformer.FullRecomputation
		e.selective = e.selective || c.recompute == transformer.SelectiveRecomputation
		e.dots = e.dots || c.recompute == transformer.DotsRecomputation
		if c.sizes[pipeAxis] > 1 && !slices.Contains(e.kinds, c.kind) {
			e.kinds = append(e.kinds, c.kind)
		}
		e.wide = e.wide || p.overlap[fsdpAxis] && !p.chosen[fsdpAxis] && p.cluster.Axes(c.sizes[:])[fsdpAxis].Nodes > wideNodes
		e.uneven = e.uneven || p.uneven(c)
		e.padded = e.padded || p.model.shape != nil && p.model.shape.Vocab%c.sizes[tensorAxis] != 0
		e.shared = e.shared || p.model.shape != nil && p.model.shape.KVHeads < c.sizes[tensorAxis]
	}
	var list []Assumption
	for _, a := range assumptions {
		if a.holds(&e) {
			list = append(list, Assumption{a.code, a.text(&e)})
		}
	}
	return list
}

// limited reports whether experts have a capacity: a limit of tokens.
func (p *planner) limited() bool {
	x := p.model.shape.Experts
	return x != nil && x.CapacityThousandths > 0
}

// uneven reports whether the pipeline stages of a candidate have unequal layers.
func (p *planner) uneven(c *score) bool {
	list := p.model.stages(c.sizes[pipeAxis], c.chunks)
	return slices.ContainsFunc(list, func(g stage) bool { return g.layers() != list[0].layers() })
}

// communicates reports whether some candidate uses an axis, so that devices communicate.
func (e *evidence) communicates() bool { return e.used != [numAxes]bool{} }

func (e *evidence) transformer() bool { return e.model.shape != nil }

// replicated reports whether some candidate has replicas of the weights.
func (e *evidence) replicated() bool {
	return e.used[dataAxis] || e.used[contextAxis] || e.used[expertAxis]
}

// stated returns a text function for an assumption with a constant text.
func stated(text string) func(*evidence) string { return func(*evidence) string { return text } }

// assumptions is the table of all assumptions. A report includes an assumption if its
// function holds returns true.
var assumptions = []struct {
	code  string
	holds func(*evidence) bool
	text  func(*evidence) string
}{
	{"precision", func(*evidence) bool { return true }, (*evidence).precisionText},
	{"margin", func(e *evidence) bool { return e.cluster.Memory > 0 }, func(e *evidence) string {
		return fmt.Sprintf("%s of the memory stays free for the runtime, communication and fragmentation. This is a convention, and search.margin changes it.", percent(e.margin))
	}},
	{"activations", (*evidence).transformer, stated("The activations follow a formula for fused kernels (Korthikanti et al., arXiv 2205.05198, equations 1 to 6). The most is what JAX keeps without jax.checkpoint, and the least is what it keeps with the policy dots_with_no_batch_dims_saveable.")},
	{"flash", func(e *evidence) bool { return e.transformer() && e.attention == transformer.FlashAttention }, stated("Attention stores no array of sequence × sequence (Dao et al., arXiv 2205.14135).")},
	{"sequence-parallel", func(e *evidence) bool { return e.used[tensorAxis] && e.transformer() && e.planner.sequenceParallel }, stated("The axis tensor also splits norms and dropout, by the sequence. Each all-reduce is then a reduce-scatter and an all-gather (Korthikanti et al., arXiv 2205.05198, section 4.2.2).")},
	{"scores", func(e *evidence) bool { return e.transformer() && !e.model.shape.Unmasked }, (*evidence).scoresText},
	{"vocabulary", func(e *evidence) bool { return e.padded }, stated("The vocabulary is padded to a multiple of tensor, as in Megatron-LM.")},
	{"routing", func(e *evidence) bool { return e.transformer() && e.model.shape.Experts != nil }, stated("Tokens are spread evenly over the experts, as the load-balancing loss of Fedus et al., arXiv 2101.03961, encourages.")},
	{"capacity", func(e *evidence) bool { return e.transformer() && e.limited() }, stated("Experts compute as many tokens as their capacity, also if fewer are sent to them (Lepikhin et al., arXiv 2006.16668). The utilization counts only tokens that are sent.")},
	{"heads", func(e *evidence) bool { return e.shared }, stated("With fewer key and value heads than tensor devices, several devices hold and compute the same head. They sum its gradients once per step.")},
	{"stages", func(e *evidence) bool { return e.used[pipeAxis] && e.uneven }, stated("Layers are spread over the stages so that the slowest stage has the fewest operations, and the head is on the last stage. Llama 3, arXiv 2407.21783, section 3.3.2, has fewer layers on the last stage too.")},
	{"tied", func(e *evidence) bool { return e.used[pipeAxis] && e.transformer() && e.model.shape.Tied }, stated("A tied embedding is on the first and on the last stage, which add up its gradients, as in Megatron-LM.")},
	{"fsdp", func(e *evidence) bool { return e.used[fsdpAxis] }, (*evidence).fsdpText},
	{"zero", func(e *evidence) bool { return e.replicated() && (e.zero[1] || e.zero[2]) }, (*evidence).zeroText},
	{"context", func(e *evidence) bool { return e.used[contextAxis] }, stated("Keys and values pass around the ring of the axis context (Liu et al., arXiv 2310.01889). Every device has equally many scores to compute.")},
	{"recomputation", func(e *evidence) bool { return e.selective || e.dots || e.full }, (*evidence).recomputationText},
	{"efficiency", func(e *evidence) bool { return e.times }, (*evidence).efficiencyText},
	{"overlap", func(e *evidence) bool { return e.times && e.communicates() }, (*evidence).overlapText},
	{"gradients", func(e *evidence) bool { return e.times && e.replicated() && e.overlap[dataAxis] }, stated("Gradients are summed over the replicas once per step, during the backward pass of the last micro-batch, which takes two thirds of its time. ZeRO stage 2 sums them for every micro-batch.")},
	{"links", func(e *evidence) bool { return e.times && e.communicates() }, (*evidence).linksText},
	{"latency", func(e *evidence) bool { return e.times && e.communicates() }, (*evidence).latencyText},
	{"torus", func(e *evidence) bool { return e.times && e.cluster.Topology.Dimensions() > 0 && e.communicates() }, stated("Mesh axes take whole dimensions of the torus if they can, the inner ones first, as jax.make_mesh does. An axis with a part of a dimension needs mesh_utils.create_device_mesh with allow_split_physical_axes=True.")},
	{"slices", func(e *evidence) bool { return e.times && e.cluster.Topology == hardware.Torus3 && e.communicates() }, (*evidence).slicesText},
	{"memory-traffic", func(e *evidence) bool { return e.times && e.cluster.HBM > 0 }, stated("The update reads and writes weights and states once, at the full bandwidth of the memory. Weights are read for every micro-batch, during computation.")},
	{"bubble", func(e *evidence) bool { return e.times && e.used[pipeAxis] }, (*evidence).bubbleText},
	{"tf32", func(e *evidence) bool { return e.times && e.format == hardware.TF32 }, stated("Products of float32 arrays run in TF32, as XLA does on GPUs by default.")},
	{"flat", func(e *evidence) bool { return e.model.name == "parameters" }, (*evidence).flatText},
	{"quantized", func(e *evidence) bool { return e.precision.Moments.IsQuantized() }, stated("The scales of quantized moments do not count. One float32 for each 2,048 elements of a moment (Dettmers et al., arXiv 2110.02861) adds 0.002 bytes per element.")},
	{"tree-types", func(e *evidence) bool { return e.model.name == "tree" }, stated("Gradients and moments have the type of their array unless precision names one, as in optax.")},
	{"processes", func(e *evidence) bool { return e.layout && e.doc.Input.Processes == 0 }, func(e *evidence) string {
		if n := e.cluster.Host; n > 0 {
			return fmt.Sprintf("A process loads data for the %d devices of a TPU host.", n)
		}
		return "A process loads data for the devices of a node."
	}},
}

// percent writes thousandths as a percentage.
func percent(n int64) string { return thousandths(int(100*n)) + " %" }

func (e *evidence) flatText() string {
	text := "All parameters form one array, which any number of devices can split."
	switch e.optimizer {
	case memory.Adafactor:
		text += " Its second moment counts whole. For matrices, adafactor keeps sums of rows and of columns, which take next to nothing."
	case memory.Muon:
		text += " It counts as a matrix, for which muon keeps one moment."
	}
	return text
}

func (e *evidence) precisionText() string {
	if e.model.name == "tree" {
		return fmt.Sprintf("The optimizer is %s.", e.optimizer)
	}
	p := e.precision
	master, without := ", the master copy in "+p.Master.String(), ""
	if !p.Master.Valid() {
		master, without = "", ", without a master copy of the weights"
	}
	return fmt.Sprintf("Weights are in %s, gradients in %s%s, and moments of %s in %s%s (as in Rajbhandari et al., arXiv 1910.02054, section 3.1).", p.Weights, p.Gradients, master, e.optimizer, p.Moments, without)
}

func (e *evidence) scoresText() string {
	const counted = "MFU counts all scores, as publications do (Narayanan et al., arXiv 2104.04473)."
	if e.attention == transformer.PlainAttention {
		return "Plain attention computes all scores, also those that the causal mask removes. " + counted
	}
	return "Flash attention computes half of the scores, because a causal mask removes the others, and the backward pass computes them again (Dao, arXiv 2307.08691, sections 2.3 and 3.1). " + counted
}

func (e *evidence) fsdpText() string {
	split := "the largest dimension of an array that its size divides"
	if e.model.specified {
		split = "arrays as their specs say"
	}
	held := ". Gathered weights do not count as memory, because the layers of the model are not known."
	if e.transformer() {
		held = ", but an embedding only for the lookup, unless the head uses it too. A device holds two gathered layers, and the gradients of one."
	}
	return "The axis fsdp is ZeRO stage 3 (Rajbhandari et al., arXiv 1910.02054, section 7.2.2): it splits " + split + ", and gathers weights for both passes of every micro-batch" + held
}

func (e *evidence) zeroText() string {
	text := "ZeRO divides states and gradients by elements, with padding, as Megatron-LM's distributed optimizer does. Stage 2 scatters gradients for every micro-batch."
	if e.undivided >= 10 { // norms and biases are fewer
		text += fmt.Sprintf(" A spec of JAX divides dimensions. With some of these meshes the replicas divide no dimension of arrays with up to %s %% of the weights: flatten and pad their states, or they stay whole and need more memory.", thousandths(int(e.undivided)*100))
	}
	return text
}

func (e *evidence) recomputationText() string {
	var texts []string
	if e.selective {
		texts = append(texts, "Selective recomputation computes the scores of attention again.")
	}
	if e.dots {
		texts = append(texts, "Recomputation of dots is jax.checkpoint around each layer with the policy dots_with_no_batch_dims_saveable: it keeps the results of matrix products with weights, and computes the scores of attention and all operations of single elements again.")
	}
	if e.full {
		text := "Full recomputation is jax.checkpoint around each layer, with the policy nothing_saveable"
		if e.used[tensorAxis] {
			text += "; it repeats both all-reduces of a layer's forward pass, as Megatron-LM does, of which XLA removes one"
		}
		texts = append(texts, text+".")
	}
	return strings.Join(texts, " ")
}

func (e *evidence) efficiencyText() string {
	text := fmt.Sprintf("Matrix products reach %s of the peak FLOP/s, and the expected time is for the middle; training.efficiency changes this.", e.efficiency)
	if e.doc.Training.Efficiency == [2]int{} {
		text += " This is the range of published runs: " + e.published().Source + "."
	}
	return text
}

func (e *evidence) overlapText() string {
	var during, before []string
	for a := range numAxes {
		switch {
		case !e.used[a]:
		case e.overlap[a]:
			during = append(during, a.String())
		default:
			before = append(before, a.String())
		}
	}
	var texts []string
	if len(during) > 0 {
		texts = append(texts, "communication over "+strings.Join(during, ", ")+" runs during computation")
	}
	if len(before) > 0 {
		texts = append(texts, "computation waits for communication over "+strings.Join(before, ", "))
	}
	text := strings.Join(texts, ", and ")
	if e.wide {
		text += fmt.Sprintf("; over more than %d nodes, computation waits for fsdp too, and its links reach half of their share, because published runs hide it up to there (MaxText on 256 H100), and on 48 nodes or more they did not (Narayanan et al., arXiv 2104.04473, table 2)", wideNodes)
	}
	return strings.ToUpper(text[:1]) + text[1:] + "; training.overlap changes this. In the best case, all communication that may overlap does so, and in the worst case, none."
}

func (e *evidence) linksText() string {
	text := fmt.Sprintf("Links reach %s of their bandwidth, and the expected time is for the middle; training.link_efficiency changes this.", e.linkEfficiency)
	if e.doc.Training.LinkEfficiency == [2]int{} {
		text += " In a node of H100, an all-reduce reaches 33 % for 58 MB and 82 % for 10 GB (Austin et al., How to Scale Your Model, 2025, part 12)."
	}
	return text
}

func (e *evidence) latencyText() string {
	var steps []string
	if e.cluster.Node.Known() {
		steps = append(steps, seconds(e.cluster.Node.LatencyNs)+" inside a node")
	}
	if e.cluster.Network.Known() && e.cluster.Nodes() > 1 {
		steps = append(steps, seconds(e.cluster.Network.LatencyNs)+" between nodes")
	}
	return "Each step of a collective adds " + strings.Join(steps, " and ") + ", by convention unless the document gives latencies."
}

func (e *evidence) slicesText() string {
	text := "A slice is a straight torus; Google also offers twisted ones, such as 4×4×8, with a faster all-to-all."
	if e.cluster.Kind == "tpu-v7" {
		text += " The faster link between the two devices of a chip is left out."
	}
	return text
}

func (e *evidence) bubbleText() string {
	var texts []string
	for _, kind := range e.kinds {
		switch kind {
		case pipeline.Interleaved:
			texts = append(texts, "With p stages of v chunks of layers, interleaved, a stage is idle for the time of (p-1)/v micro-batches (Narayanan et al., arXiv 2104.04473, section 2.2.2).")
		case pipeline.ZeroBubble:
			texts = append(texts, "With p stages, a stage is idle for the time (p-1)(F+B-W), where F, B and W take equally long (Qi et al., arXiv 2401.10241, table 2).")
		default:
			texts = append(texts, "With p stages, a stage is idle for the time of p-1 micro-batches (Huang et al., arXiv 1811.06965). Unequal stages take the time of their operations.")
		}
	}
	return strings.Join(texts, " ")
}
