package layout

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The ways of loading: what a process gathers for its devices. They are the
// four of JAX's guide to distributed data loading. All deliver the same global
// arrays. An index is the part of an array that one device holds.
const (
	// LoadProcess, the default, gathers each distinct index of a process's
	// devices once. A process reads only the data that its devices need, and no
	// data moves between devices afterwards.
	LoadProcess = "process"

	// LoadGlobal gathers the whole batch in every process, and keeps the part
	// that the process's devices hold. With n processes, the batch is read n
	// times. It is meant for comparisons.
	LoadGlobal = "global"

	// LoadDevice gathers the index of every device separately, into its own
	// memory. If several devices of a process hold the same index, it is
	// gathered for each of them.
	LoadDevice = "device"

	// LoadReshard splits the batch dimensions over all axes of the mesh and
	// ignores the specs (see [Array.Delivered]), so every device gets an equal
	// part of the rows. The user's program then reshards the arrays to their
	// specs ([Array.Sharding]). [Totals] has the bytes that this moves.
	LoadReshard = "reshard"
)

// loadings lists the ways of loading.
var loadings = []string{LoadProcess, LoadGlobal, LoadDevice, LoadReshard}

// Loading returns the way of loading.
func (l *Layout) Loading() string { return l.doc.loading() }

func (d *Document) loading() string {
	if d.Loading == "" {
		return LoadProcess
	}
	return d.Loading
}

// evenSpec returns the spec that splits the batch over all axes. In mesh order, it appends
// each axis to the entry of the first batch dimension with a remaining size that the axis
// divides. If an axis divides none, spec is nil and axis is the number of that axis.
// Otherwise axis is -1.
func (l *Layout) evenSpec() (spec sharding.PartitionSpec, axis int) {
	left := l.BatchShape()
	spec = make(sharding.PartitionSpec, len(left))
	for i, a := range l.mesh.Axes() {
		d := slices.IndexFunc(left, func(n int) bool { return n%a.Size == 0 })
		if d < 0 {
			return nil, i
		}
		left[d] /= a.Size
		spec[d] = append(spec[d], a.Name)
	}
	return spec, -1
}

// addDelivered computes how the loader delivers every array.
func (l *Layout) addDelivered() {
	l.delivered = l.tilings
	if l.Loading() != LoadReshard || l.doc.Batch == nil {
		for i := range l.arrays {
			l.arrays[i].Delivered = l.arrays[i].Sharding
		}
		return
	}
	spec, axis := l.evenSpec()
	if axis >= 0 {
		l.reportUneven(axis)
	}
	l.delivered = slices.Clone(l.tilings)
	for i := range l.arrays {
		a := &l.arrays[i]
		if a.Sharding == nil || a.Kind == Static {
			a.Delivered = a.Sharding
			continue
		}
		s, t, faults := sharding.Fit(l.mesh, spec, a.Shape, a.Name)
		if axis < 0 && len(faults) == 0 && l.checkRanges(*a, t, "/loading") {
			a.Delivered, l.delivered[i] = s, t
		}
	}
}

// reportUneven reports that the batch cannot be split over all axes.
func (l *Layout) reportUneven(axis int) {
	size, devices := l.BatchShape(), l.mesh.Size()
	if len(size) == 1 {
		l.report(problem.Error, Indivisible, "/batch/size",
			fmt.Sprintf(`with loading "reshard" the batch of %d is split over all %d devices, but %d %% %d = %d`, size[0], devices, size[0], devices, size[0]%devices),
			fmt.Sprintf(`use a batch of %s, or another way of loading`, sharding.Nearest(size[0], devices)),
			fact("size", int64(size[0])), fact("tiles", int64(devices)), fact("remainder", int64(size[0]%devices)))
		return
	}
	a := l.mesh.Axes()[axis]
	l.report(problem.Error, Indivisible, "/batch/size",
		fmt.Sprintf(`with loading "reshard" the batch of shape %s is split over all axes, but axis %s (size %d) divides no batch dimension, after the axes before it`, wording.Shape(size), wording.Quote(a.Name), a.Size),
		fmt.Sprintf("make a batch dimension a multiple of %d, the number of devices, or use another way of loading", devices),
		fact("tiles", int64(devices)))
}

// checkLoading reports the additional cost of a way of loading that is not the
// default.
func (l *Layout) checkLoading() {
	t := l.costs.totals
	if !l.costs.known || l.Loading() == LoadProcess || t.ReadBytes > MaxInteger {
		return
	}
	facts := []problem.Fact{{Name: "read_bytes", Value: t.ReadBytes}, {Name: "process_read_bytes", Value: l.costs.least}}
	switch {
	case l.Loading() == LoadReshard:
		l.report(problem.Info, Loading, "/loading",
			fmt.Sprintf(`%d bytes of a batch are read, and then at least %d move between devices, %d of them between processes; "process" reads %d, and nothing moves`, t.ReadBytes, t.InterconnectBytes, t.NetworkBytes, l.costs.least),
			"reshard every batch in the step, under jit", append(facts, fact("interconnect_bytes", t.InterconnectBytes), fact("network_bytes", t.NetworkBytes))...)
	case t.ReadBytes > l.costs.least:
		l.report(problem.Info, Loading, "/loading",
			fmt.Sprintf(`%d bytes are read for every batch, %s times the %d of "process"`, t.ReadBytes, wording.Ratio(t.ReadBytes, l.costs.least), l.costs.least),
			"leave loading out, unless you compare", facts...)
	}
}
