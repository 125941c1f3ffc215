package memory

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// An array is worth a warning if its copies waste this much of a device.
const (
	leastBytes = 1 << 20
	leastShare = 100 // 1 / leastShare of what is stored
)

// checkReplicated reports large arrays that an axis copies, although it partitions
// other arrays and could partition this one. Axes of the batch do not count for
// parameters: data parallelism copies them on purpose.
func (u *Usage) checkReplicated() {
	model := slices.Concat(u.Parameters, u.States)
	u.findReplicated("/arrays/", u.Parameters, u.partitioning(model))
	if u.Tree.Optimizer == NoOptimizer {
		u.findReplicated("/optimizer/", u.States, u.partitioning(model))
	}
	u.findReplicated("/batch/", u.Batch, u.partitioning(u.Batch))
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

func (u *Usage) findReplicated(path string, rows []Row, axes map[string]bool) {
	for _, r := range rows {
		if r.Shard != nil || r.Part == nil {
			continue
		}
		spec, devices, names := u.better(r, axes)
		bytes := r.Bytes + r.Gradient + r.States
		saved := bytes - bytes/devices
		if saved < leastBytes || saved < u.Totals.Stored/leastShare {
			continue
		}
		which := "axis " + wording.Quote(names[0]) + ", which partitions"
		if len(names) > 1 {
			which = "axes " + wording.QuotedList(names) + ", which partition"
		}
		u.Problems = append(u.Problems, Problem{
			Severity: Warning, Code: Replicated, Path: path + jsontext.Escape(r.Name) + "/spec",
			Message: fmt.Sprintf("array %s has %d copies along %s other arrays", wording.Quote(r.Name), devices, which),
			Hint:    fmt.Sprintf("write %s to save %s of every device, unless the copies are meant", wording.Plain(spec.String()), wording.Bytes(saved)),
			Facts:   []sharding.Fact{{Name: "bytes", Value: saved}, {Name: "devices", Value: devices}},
		})
	}
}

// better returns a spec that also uses the axes along which the array has copies.
// Every axis partitions the largest dimension of the part that it divides. Devices
// is the product of the sizes of these axes.
func (u *Usage) better(r Row, axes map[string]bool) (spec sharding.PartitionSpec, devices int64, names []string) {
	spec, devices = r.Spec.Clone(), 1
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
		for len(spec) <= best {
			spec = append(spec, nil)
		}
		spec[best] = append(spec[best], axis.Name)
		part[best] /= axis.Size
		devices *= int64(axis.Size)
		names = append(names, axis.Name)
	}
	return spec, devices, names
}
