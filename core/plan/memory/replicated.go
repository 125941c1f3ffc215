package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Copies of an array cause a warning if they waste at least leastBytes of a device, and at
// least 1/leastShare of its stored bytes.
const (
	leastBytes = 1 << 20
	leastShare = 100
)

// checkReplicated reports large arrays with copies along an axis that partitions other
// arrays and could partition this one. For parameters, axes that partition only the batch
// do not count, because data parallelism copies parameters on purpose.
func (u *Usage) checkReplicated() {
	model := u.partitioning(slices.Concat(u.Parameters, u.States))
	parameter := u.parametersByName()
	first := len(u.Problems)
	u.findReplicated("/arrays/", u.Parameters, func(r *Row) proposal { return u.extend(r, model) })
	if u.Tree.Optimizer == NoOptimizer {
		u.findReplicated("/optimizer/", u.States, func(r *Row) proposal {
			if p := likeParameter(r, parameter); p.devices > 1 {
				return p
			}
			return u.extend(r, model)
		})
	}
	batch := u.partitioning(u.Batch)
	u.findReplicated("/batch/", u.Batch, func(r *Row) proposal { return u.extend(r, batch) })
	slices.SortStableFunc(u.Problems[first:], func(a, b problem.Problem) int { return cmp.Compare(b.Facts[0].Value, a.Facts[0].Value) })
}

// proposal is a spec with fewer copies of an array.
type proposal struct {
	spec    sharding.PartitionSpec
	devices int64    // the number of copies that the spec replaces by one
	axes    []string // the axes along which the array has these copies
}

func (u *Usage) parametersByName() map[string]*Row {
	byName := make(map[string]*Row, len(u.Parameters))
	for i := range u.Parameters {
		byName[u.Parameters[i].Name] = &u.Parameters[i]
	}
	return byName
}

// likeParameter proposes the spec of a state's parameter. The name of the state ends
// with the name of that parameter, and both have the same shape. Without such a
// parameter, or if its spec leaves another axis unused, devices is 0.
func likeParameter(state *Row, parameters map[string]*Row) (p proposal) {
	for name := state.Name; name != ""; {
		like, known := parameters[name]
		if !known || like.Part == nil || like.Shard != nil || !slices.Equal(like.Shape, state.Shape) {
			_, name, _ = strings.Cut(name, "/")
			continue
		}
		if slices.ContainsFunc(like.Replicated, func(axis string) bool { return !slices.Contains(state.Replicated, axis) }) {
			return p // each uses an axis that the other does not use
		}
		for _, axis := range state.Replicated {
			if !slices.Contains(like.Replicated, axis) {
				p.axes = append(p.axes, axis)
			}
		}
		p.spec, p.devices = like.Spec, state.Copies/like.Copies
		return p
	}
	return p
}

// partitioning returns the set of axes that partition one of the arrays.
func (u *Usage) partitioning(rows []Row) map[string]bool {
	axes := map[string]bool{}
	for _, r := range rows {
		if r.Part == nil {
			continue
		}
		for _, entry := range r.Spec {
			for _, axis := range entry {
				axes[axis] = true
			}
		}
	}
	return axes
}

func (u *Usage) findReplicated(path string, rows []Row, propose func(*Row) proposal) {
	for i := range rows {
		r := &rows[i]
		if r.Shard != nil || r.Part == nil || r.Host != "" {
			continue
		}
		p, bytes := propose(r), r.Bytes+r.Gradient+r.States
		saved := bytes - bytes/p.devices
		if saved < leastBytes || saved < u.Totals.Stored/leastShare {
			continue
		}
		which := "axis " + wording.Quote(p.axes[0]) + ", which partitions"
		if len(p.axes) > 1 {
			which = "axes " + wording.QuotedList(p.axes) + ", which partition"
		}
		u.Problems = append(u.Problems, problem.Problem{
			Severity: problem.Warning, Code: Replicated, Path: path + jsontext.Escape(r.Name) + "/spec",
			Message: fmt.Sprintf("array %s has %d copies along %s other arrays", wording.Quote(r.Name), p.devices, which),
			Hint:    fmt.Sprintf("write %s to save %s of every device, unless the copies are meant", wording.Plain(p.spec.String()), wording.Bytes(saved)),
			Facts:   []problem.Fact{{Name: "bytes", Value: saved}, {Name: "devices", Value: p.devices}},
		})
	}
}

// extend proposes a spec that also uses the given axes along which the array has copies.
// Each axis partitions the largest dimension of the part that its size divides.
func (u *Usage) extend(r *Row, axes map[string]bool) proposal {
	p := proposal{spec: r.Spec.Clone(), devices: 1}
	part := slices.Clone(r.Part)
	for _, axis := range u.Tree.Mesh.Axes() {
		if !axes[axis.Name] || !slices.Contains(r.Replicated, axis.Name) {
			continue
		}
		best := -1
		for d, size := range part {
			if size > 0 && size%axis.Size == 0 && (best < 0 || size > part[best]) {
				best = d
			}
		}
		if best < 0 {
			continue
		}
		for len(p.spec) <= best {
			p.spec = append(p.spec, nil)
		}
		p.spec[best] = append(p.spec[best], axis.Name)
		part[best] /= axis.Size
		p.devices *= int64(axis.Size)
		p.axes = append(p.axes, axis.Name)
	}
	return p
}
