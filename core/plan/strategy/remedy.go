package strategy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// attempt is a document with one change that may make a candidate fit.
type attempt struct {
	text     string // the change; "%s" stands for the mesh that fits
	document Document
}

// remedies lists kinds of changes. Kinds with the least influence on the training
// come first. Each returns attempts, the smallest change first.
var remedies = []func(*planner) []attempt{
	(*planner).otherSearch, (*planner).fewerActivations, (*planner).smallerStates, (*planner).moreDevices,
}

// remedy returns a hint with the first change of each kind that makes a candidate
// fit. Each change is evaluated, unless there are more than MaxMeshes meshes. nearest is
// the candidate that needs the least memory.
func (r *Report) remedy(p *planner, nearest *Candidate) string {
	var found []string
	many := slices.ContainsFunc(r.Pruned, func(p Pruned) bool { return p.Code == TooManyMeshes })
	for _, attempts := range remedies {
		if many {
			break
		}
		for _, a := range attempts(p) {
			fits, more := a.document.fits()
			if fits != nil {
				found = append(found, strings.ReplaceAll(a.text, "%s", MeshText(fits.mesh())))
			}
			if fits != nil || !more {
				break
			}
		}
	}
	memory := fmt.Sprintf("devices with %s", gigabytes(roundedUp(p.needed(nearest.Memory.Total))))
	if len(found) == 0 {
		return "use " + memory + ", or a smaller model"
	}
	return "each of these changes suffices: " + strings.Join(append(found, memory), "; ")
}

// needed returns the memory that a device must have so that total leaves the margin free.
func (p *planner) needed(total int64) int64 {
	rest := 1000 - p.margin
	return amount.Sum(amount.Product(total/rest, 1000), ceil(total%rest*1000, rest))
}

// roundedUp rounds bytes up to the digits that gigabytes writes.
func roundedUp(n int64) int64 {
	step := int64(100_000)
	for n/step >= 1000 {
		step *= 10
	}
	return amount.Product(n/step+min(1, n%step), step)
}

// fits returns the first mesh with a candidate that fits, or nil. more is false if
// there are more than MaxMeshes meshes, so that further attempts would take long.
func (d *Document) fits() (mesh *sizes, more bool) {
	if d.Validate() != nil {
		return nil, true
	}
	p, err := newPlanner(d)
	if err != nil {
		return nil, true
	}
	meshes := p.enumerate()
	if meshes.legal > MaxMeshes {
		return nil, false
	}
	e, fits := newEvaluator(p), false
	for _, s := range meshes.found {
		if !e.setMesh(s) {
			continue
		}
		if err := e.each(false, func(c score) { fits = fits || c.fits }); err != nil {
			return nil, true
		}
		if fits {
			return &s, true
		}
	}
	return nil, true
}

// with returns an attempt: the document after a change, and the text of the change.
func (p *planner) with(change func(*Document), format string, args ...any) attempt {
	d := *p.doc
	change(&d)
	return attempt{fmt.Sprintf(format, args...), d}
}

// otherSearch tries the stages of ZeRO and the meshes that the document excludes.
func (p *planner) otherSearch() (list []attempt) {
	if p.doc.Search.ZeRO != nil {
		list = append(list, p.with(func(d *Document) { d.Search.ZeRO = nil }, "stages 0 to 2 of ZeRO"))
	}
	if p.doc.Search.Axes != nil {
		list = append(list, p.with(func(d *Document) { d.Search.Axes = nil }, "the mesh %%s"))
	}
	return list
}

func (p *planner) fewerActivations() (list []attempt) {
	t := &p.doc.Training
	for n := t.MicroBatch / 2; n > 0; n /= 2 {
		list = append(list, p.with(func(d *Document) { d.Training.MicroBatch = n }, "micro_batch %d", n))
	}
	if p.attention == transformer.PlainAttention {
		list = append(list, p.with(func(d *Document) { d.Training.Attention = Flash }, `attention "flash"`))
	}
	if t.Recomputation == None || t.Recomputation == Selective {
		list = append(list, p.with(func(d *Document) { d.Training.Recomputation = Full }, `recomputation "full"`))
		if t.MicroBatch > 1 {
			list = append(list, p.with(func(d *Document) { d.Training.Recomputation, d.Training.MicroBatch = Full, 1 }, `recomputation "full" and micro_batch 1`))
		}
	}
	return list
}

func (p *planner) smallerStates() (list []attempt) {
	if p.optimizer != memory.AdamW {
		return nil
	}
	if p.model.name != "tree" && p.precision.Moments.Bits() > 16 {
		list = append(list, p.with(func(d *Document) { d.Training.Precision.Moments = "bfloat16" }, "moments in bfloat16"))
	}
	return append(list, p.with(func(d *Document) { d.Training.Optimizer = memory.Adafactor.String() }, `optimizer "adafactor"`))
}

// moreDevices multiplies the devices by 1.5, 2, 3, 4, 6 and so on, up to 1,024, if they
// fill nodes. The size of a node stays.
func (p *planner) moreDevices() (list []attempt) {
	for n := 2 * p.cluster.Devices; n <= min(MaxDevices, 1024*p.cluster.Devices); n *= 2 {
		for _, devices := range [...]int{n * 3 / 4, n} {
			if devices%p.cluster.PerNode == 0 && devices > 1 {
				list = append(list, p.with(func(d *Document) {
					d.Cluster.Devices = devices
					if d.Cluster.Device == "" {
						d.Cluster.PerNode = p.cluster.PerNode
					}
				}, "%s devices", wording.Thousands(int64(devices))))
			}
		}
	}
	return list
}
