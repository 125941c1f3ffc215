package strategy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// order is the order of axes in which the enumerator chooses their sizes. Axes with
// rules of their own come first, so that one broken rule excludes many meshes at once.
var order = [numAxes]axis{tensorAxis, expertAxis, contextAxis, pipeAxis, fsdpAxis, dataAxis}

// enumerator lists the meshes of the devices that break no rule, and counts the others.
type enumerator struct {
	*planner
	domain [numAxes][]int       // sizes that an axis may take, ascending; they divide the devices
	counts map[[2]int]int64     // results of count, by level and rest
	found  []sizes              // meshes that break no rule, up to MaxMeshes
	byUsed [numAxes + 1][]sizes // found, by the number of axes that split something
	legal  int64                // all meshes that break no rule, also meshes beyond MaxMeshes
	pruned []Pruned
}

// MaxMeshes is the largest number of meshes that Advise evaluates.
const MaxMeshes = 1 << 11

func (p *planner) enumerate() *enumerator {
	e := &enumerator{planner: p, counts: map[[2]int]int64{}}
	divisors := divisors(p.cluster.Devices)
	for a := range numAxes {
		e.domain[a] = []int{1}
		if p.model.axes[a] {
			e.domain[a] = divisors
		}
	}
	for _, x := range p.doc.Search.Axes {
		a := axisOf(x.Axis)
		e.domain[a] = slices.DeleteFunc(slices.Clone(e.domain[a]), func(n int) bool { return !slices.Contains(x.Sizes, n) })
	}
	e.choose(0, p.cluster.Devices, sizes{1, 1, 1, 1, 1, 1})
	e.limit()
	return e
}

func divisors(n int) []int {
	var list []int
	for d := 1; d*d <= n; d++ {
		if n%d != 0 {
			continue
		}
		list = append(list, d)
		if d*d < n {
			list = append(list, n/d)
		}
	}
	slices.Sort(list)
	return list
}

// checkSearch checks the sizes that the document asks for.
func (p *planner) checkSearch() error {
	for _, x := range p.doc.Search.Axes {
		path := "/search/axes/" + jsontext.Escape(x.Axis)
		a := axisOf(x.Axis)
		if !p.model.axes[a] && !slices.Contains(x.Sizes, 1) {
			return form.Strategy.Invalid(path, "axis %q cannot split this model, so its size is 1", x.Axis).WithHint("%s", p.whyNot(a))
		}
		for _, n := range x.Sizes {
			if p.cluster.Devices%n != 0 && len(x.Sizes) == 1 {
				return form.Strategy.Invalid(path, "axis %q has size %d, which does not divide %d devices: %d %% %d = %d", x.Axis, n, p.cluster.Devices, p.cluster.Devices, n, p.cluster.Devices%n).
					WithHint("use %s", nearest(divisors(p.cluster.Devices), n))
			}
		}
	}
	return nil
}

// nearest names the elements of an ascending list before and after n, which is not in it.
func nearest(list []int, n int) string {
	i, _ := slices.BinarySearch(list, n)
	if i == len(list) {
		return strconv.Itoa(list[i-1])
	}
	return fmt.Sprintf("%d or %d", list[i-1], list[i])
}

// whyNot says what a model needs so that an axis can split it.
func (p *planner) whyNot(a axis) string {
	switch {
	case p.model.shape != nil:
		return "only a transformer with experts has this axis"
	case p.model.name == "tree" && (a == expertAxis || a == tensorAxis):
		return "name the axis in the spec of an array"
	}
	return "describe the model as a transformer"
}

// choose tries all sizes for order[level] and the axes after it. rest is the number of
// devices divided by the sizes chosen so far.
func (e *enumerator) choose(level, rest int, s sizes) {
	if level == len(order) {
		if rest == 1 {
			e.find(s)
		}
		return
	}
	a := order[level]
	for _, n := range e.domain[a] {
		if rest%n != 0 || level == len(order)-1 && n != rest {
			continue
		}
		s[a] = n
		if code := e.broken(a, s, rest/n); code != "" {
			e.prune(code, level+1, rest/n, s)
			continue
		}
		e.choose(level+1, rest/n, s)
	}
}

// find adds a mesh, unless MaxMeshes meshes with the same number of axes exist already.
func (e *enumerator) find(s sizes) {
	e.legal++
	if n := s.used(); len(e.byUsed[n]) < MaxMeshes {
		e.byUsed[n] = append(e.byUsed[n], s)
	}
}

// limit keeps the MaxMeshes meshes with the fewest axes, and counts the others.
func (e *enumerator) limit() {
	for _, list := range e.byUsed {
		e.found = append(e.found, list[:min(len(list), MaxMeshes-len(e.found))]...)
	}
	if rest := e.legal - int64(len(e.found)); rest > 0 {
		e.pruned = append(e.pruned, Pruned{Code: TooManyMeshes, Count: rest, Message: e.rule(TooManyMeshes)})
	}
}

// count returns in how many ways the sizes of order[level] and the axes after it
// multiply to rest.
func (e *enumerator) count(level, rest int) int64 {
	if level == len(order) {
		if rest == 1 {
			return 1
		}
		return 0
	}
	key := [2]int{level, rest}
	if n, ok := e.counts[key]; ok {
		return n
	}
	n := int64(0)
	for _, size := range e.domain[order[level]] {
		if rest%size == 0 {
			n += e.count(level+1, rest/size)
		}
	}
	e.counts[key] = n
	return n
}

// prune counts the meshes that begin with the sizes chosen so far.
func (e *enumerator) prune(code string, level, rest int, s sizes) {
	n := e.count(level, rest)
	if n == 0 {
		return
	}
	i := slices.IndexFunc(e.pruned, func(p Pruned) bool { return p.Code == code })
	if i < 0 {
		i = len(e.pruned)
		e.pruned = append(e.pruned, Pruned{Code: code, Message: e.rule(code)})
	}
	e.pruned[i].Count += n
	if e.doc.Search.Pruned {
		e.list(&e.pruned[i].Meshes, level, rest, s)
	}
}

// list adds the meshes that begin with the sizes chosen so far, up to MaxKeep.
func (e *enumerator) list(to *[][]mesh.Axis, level, rest int, s sizes) {
	if level == len(order) {
		*to = append(*to, s.mesh())
		return
	}
	a := order[level]
	for _, n := range e.domain[a] {
		if len(*to) >= MaxKeep {
			return
		}
		if rest%n == 0 && e.count(level+1, rest/n) > 0 {
			s[a] = n
			e.list(to, level+1, rest/n, s)
		}
	}
}

// The codes of rules that a mesh may break.
const (
	TensorHeads     = "tensor-heads"       // tensor divides the query heads
	TensorKVHeads   = "tensor-kv-heads"    // tensor divides the key and value heads, or is a multiple of them
	TensorFFN       = "tensor-ffn"         // tensor divides the widths of feed-forward blocks
	TensorNode      = "tensor-node"        // tensor stays in a node, unless the document names its sizes
	ExpertCount     = "expert-count"       // expert divides the experts
	ContextSequence = "context-sequence"   // context divides the sequence
	ContextShort    = "context-short"      // context splits long sequences only, unless the document names its sizes
	PipeLayers      = "pipe-layers"        // each stage has a layer
	PipeChunks      = "pipe-chunks"        // chunks of the interleaved schedule are equal
	Batch           = "batch"              // data × fsdp × expert divides the batch
	MicroBatch      = "micro-batch"        // the document's micro-batch divides the examples of a replica
	MicroBatchPipe  = "micro-batch-chunks" // the interleaved schedule has whole groups of micro-batches
	TreeSpec        = "tree-spec"          // axes in specs divide the dimensions of their arrays
	TooManyMeshes   = "too-many"           // at most MaxMeshes meshes are evaluated
)

// broken returns the code of the rule that the last chosen axis a breaks, or "". rest is
// the product of the sizes that are not chosen yet.
func (e *enumerator) broken(a axis, s sizes, rest int) string {
	if e.model.shape != nil {
		if code := e.brokenShape(a, s[a]); code != "" {
			return code
		}
	}
	if a != pipeAxis {
		return ""
	}
	replicas := int64(rest) * int64(s[expertAxis])
	switch {
	case e.batch%replicas != 0:
		return Batch
	case e.doc.Training.MicroBatch > 0 && e.batch/replicas%int64(e.doc.Training.MicroBatch) != 0:
		return MicroBatch
	case e.interleaved() && s[pipeAxis] > 1 && !e.interleaves(s[pipeAxis], e.batch/replicas):
		return MicroBatchPipe
	}
	return ""
}

// interleaves reports whether the interleaved schedule is possible: with some size of a
// micro-batch, the number of micro-batches is a multiple of the stages.
func (e *enumerator) interleaves(pipe int, examples int64) bool {
	return slices.ContainsFunc(e.microBatches(examples), func(b int) bool { return examples/int64(b)%int64(pipe) == 0 })
}

// brokenShape returns the code of the rule about the shape of a transformer that axis a
// of size n breaks, or "".
func (e *enumerator) brokenShape(a axis, n int) string {
	m := e.model.shape
	switch a {
	case tensorAxis:
		return e.brokenTensor(n)
	case expertAxis:
		if x := m.Experts; x != nil && x.Count%n != 0 {
			return ExpertCount
		}
	case contextAxis:
		switch {
		case m.Sequence%n != 0:
			return ContextSequence
		case n > 1 && m.Sequence < LongSequence && !e.asked(Context):
			return ContextShort
		}
	case pipeAxis:
		switch {
		case n > m.Layers:
			return PipeLayers
		case len(e.schedules(n)) == 0:
			return PipeChunks
		}
	}
	return ""
}

// brokenTensor returns the code of the rule that a tensor axis of size n breaks, or "".
func (e *enumerator) brokenTensor(n int) string {
	m := e.model.shape
	switch {
	case m.Heads%n != 0:
		return TensorHeads
	case m.KVHeads%n != 0 && n%m.KVHeads != 0:
		return TensorKVHeads
	case slices.ContainsFunc(e.widths(), func(f int) bool { return f%n != 0 }):
		return TensorFFN
	case n > e.cluster.PerNode && !e.asked(Tensor):
		return TensorNode
	}
	return ""
}

// widths returns the widths of the feed-forward blocks, without and with experts.
func (e *enumerator) widths() []int {
	m := e.model.shape
	switch x := m.Experts; {
	case x == nil:
		return []int{m.FFN}
	case m.ExpertLayers(0, m.Layers) == m.Layers:
		return []int{x.FFN}
	default:
		return []int{m.FFN, x.FFN}
	}
}

// numbers writes numbers with "and" between them.
func numbers(list []int) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, " and ")
}

// asked reports whether the document names the sizes of an axis.
func (e *enumerator) asked(axis string) bool {
	return slices.ContainsFunc(e.doc.Search.Axes, func(x AxisSizes) bool { return x.Axis == axis })
}

// rule returns the sentence about the rule with a code. It has the numbers of the document.
func (e *enumerator) rule(code string) string {
	m := e.model.shape
	switch code {
	case TensorHeads:
		return fmt.Sprintf("tensor must divide the %d heads", m.Heads)
	case TensorKVHeads:
		return fmt.Sprintf("tensor must divide the %d key and value heads, or be a multiple of them", m.KVHeads)
	case TensorFFN:
		return fmt.Sprintf("tensor must divide the width of the feed-forward block, %s", numbers(e.widths()))
	case TensorNode:
		return fmt.Sprintf(`tensor stays inside a node of %d devices, because it communicates in every layer; for more, write "search": {"axes": {"tensor": [1, %d]}}`, e.cluster.PerNode, 2*e.cluster.PerNode)
	case ExpertCount:
		return fmt.Sprintf("expert must divide the %d experts", m.Experts.Count)
	case ContextSequence:
		return fmt.Sprintf("context must divide the sequence of %d", m.Sequence)
	case ContextShort:
		return fmt.Sprintf(`context is tried for sequences of at least %s tokens, but this model has %s; to try it, write "search": {"axes": {"context": [1, 2]}}`, wording.Thousands(LongSequence), wording.Thousands(int64(m.Sequence)))
	case PipeLayers:
		return fmt.Sprintf("each stage of a pipeline needs a layer, but the model has %d", m.Layers)
	case PipeChunks:
		chunks := "chunks"
		if e.chunks > 0 {
			chunks = strconv.Itoa(e.chunks) + " chunks"
		}
		return fmt.Sprintf("the interleaved schedule needs stages × %s to divide %d, %d or %d: the %d layers, where the first chunk, the last or both may have a layer less than the others", chunks, m.Layers, m.Layers+1, m.Layers+2, m.Layers)
	case Batch:
		return fmt.Sprintf("data × fsdp × expert must divide the batch of %s", wording.Count(e.batch, "example", "examples"))
	case MicroBatch:
		return fmt.Sprintf("micro-batches of %d must divide the examples of a replica", e.doc.Training.MicroBatch)
	case TooManyMeshes:
		return fmt.Sprintf("only the %s meshes with the fewest axes are evaluated; for others, name sizes in search.axes", wording.Thousands(MaxMeshes))
	case MicroBatchPipe:
		return "the interleaved schedule needs a number of micro-batches that is a multiple of the stages"
	}
	return "the axes in specs of the tree must divide the dimensions of its arrays"
}
