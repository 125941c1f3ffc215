package strategy

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// part is an array of the model, or the arrays of the same name in several layers.
type part struct {
	transformer.Part
	precision memory.Precision
	states    []memory.State         // states of the optimizer
	spec      sharding.PartitionSpec // spec of a tree's array
	flat      bool                   // the part is all parameters of a model; any number of devices can split it
	layered   bool                   // the part belongs to a transformer, so its layers are known
}

func (p *planner) newPart(q transformer.Part) part {
	return part{Part: q, precision: p.precision, states: p.optimizerOf(q).States(q.Shape)}
}

// optimizerOf returns the optimizer of an array. With Muon, AdamW updates the embedding
// and the head [Jordan et al. 2024].
func (p *planner) optimizerOf(q transformer.Part) memory.Optimizer {
	if p.optimizer == memory.Muon && (q.Stage == transformer.EmbeddingStage && strings.HasPrefix(q.Name, "embedding/") || q.Stage == transformer.HeadStage) {
		return memory.AdamW
	}
	return p.optimizer
}

// shard is the part of an array that one device holds.
type shard struct {
	bytes    memory.Bytes
	elements int64 // elements of the weights
	gathered int64 // elements that fsdp gathers; 0 if it does not split the array
	holders  int   // tensor devices that hold the same elements
}

// shard returns the part of the array that one device holds, and false if the axes
// cannot split the array. If no spec names fsdp (specified is false), fsdp splits the
// largest dimension that its size divides. Without such a dimension, the array stays
// whole.
func (q *part) shard(s sizes, specified bool) (shard, bool) {
	split, ok := q.split(s)
	if !ok {
		return shard{}, false
	}
	fsdp := s[fsdpAxis]
	r := shard{elements: amount.Product(split...), holders: 1}
	if q.layered {
		r.holders = q.Holders(s[tensorAxis])
	}
	if fsdp > 1 && !specified && r.elements > 0 {
		if q.flat {
			r.gathered, split[0] = r.elements, int(ceil(r.elements, int64(fsdp)))
		} else if d := largest(split, fsdp); d >= 0 {
			r.gathered = r.elements
			split[d] /= fsdp
		}
	} else if fsdp > 1 && q.names(FSDP) {
		r.gathered = r.elements * int64(fsdp)
	}
	r.elements = amount.Product(split...)
	r.bytes = q.bytes(split, r.elements)
	return r, true
}

// split returns the shape of one device's part. It applies fsdp only if the spec names
// this axis.
func (q *part) split(s sizes) ([]int, bool) {
	if q.spec == nil {
		return q.Shard(s[tensorAxis], s[expertAxis])
	}
	shape := append([]int(nil), q.Shape...)
	for d, entry := range q.spec {
		for _, name := range entry {
			size := s[axisOf(name)]
			if shape[d]%size != 0 {
				return nil, false
			}
			shape[d] /= size
		}
	}
	return shape, true
}

// names reports whether the spec contains an axis.
func (q *part) names(axis string) bool {
	for _, entry := range q.spec {
		for _, name := range entry {
			if name == axis {
				return true
			}
		}
	}
	return false
}

// largest returns the largest dimension that n divides, or -1.
func largest(shape []int, n int) int {
	best := -1
	for d, size := range shape {
		if size%n == 0 && (best < 0 || size > shape[best]) {
			best = d
		}
	}
	return best
}

// undivided returns how many thousandths of a device's weights are in arrays without a
// dimension that the replicas divide, so that a spec of JAX cannot split their states.
func (m *model) undivided(s sizes) int64 {
	var whole, all float64
	for i := range m.parts {
		q := &m.parts[i]
		split, ok := q.split(s)
		if !ok || q.flat {
			continue
		}
		elements := float64(amount.Product(split...)) * float64(q.Copies)
		all += elements
		if d := largest(split, s[fsdpAxis]); d >= 0 && !m.specified {
			split[d] /= s[fsdpAxis]
		}
		axes := []axis{dataAxis, contextAxis, expertAxis}
		if q.Experts {
			axes = axes[:2]
		}
		for _, a := range axes {
			d := largest(split, s[a])
			if d < 0 {
				whole += elements
				break
			}
			split[d] /= s[a]
		}
	}
	if all == 0 {
		return 0
	}
	return int64(1000 * whole / all)
}

// bytes returns the sizes of a shard. A state of the optimizer is split as the
// dimensions of its parameter are.
func (q *part) bytes(shape []int, elements int64) memory.Bytes {
	b := memory.Bytes{Weights: q.precision.Weights.Bytes(elements), Gradients: q.precision.Gradients.Bytes(elements), Optimizer: q.precision.Master.Bytes(elements)}
	if q.precision.Gradients == memory.Invalid {
		return b
	}
	for _, state := range q.states {
		n := int64(1)
		for _, d := range state.Dims {
			if d >= 0 {
				n = amount.Product(n, int64(shape[d]))
			}
		}
		e := state.Element
		if e == memory.Invalid {
			e = q.precision.Moments
		}
		b.Optimizer = amount.Sum(b.Optimizer, e.Bytes(n))
	}
	return b
}
