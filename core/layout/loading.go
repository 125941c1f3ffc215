package layout

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The ways of loading: what a process gathers for its devices. They are the
// four of JAX's guide to distributed data loading. All deliver the same global
// arrays.
const (
	// LoadProcess, the default, gathers in every process every distinct index
	// that its devices hold, once. A process reads nothing that it does not
	// need, and nothing moves afterwards.
	LoadProcess = "process"

	// LoadGlobal gathers the whole batch in every process, which keeps what
	// its devices hold. All processes together read the batch once per
	// process. It is meant for comparisons.
	LoadGlobal = "global"

	// LoadDevice gathers the index of every device separately, into memory of
	// its own. Replicas in one process are gathered again.
	LoadDevice = "device"

	// LoadReshard splits the batch dimensions over all axes of the mesh,
	// whatever the specs say ([Array.Delivered]), so every device gets an equal
	// part of the rows. The program of the user then reshards the arrays to
	// their specs ([Array.Sharding]). [Totals] has the bytes that this moves.
	LoadReshard = "reshard"
)

// loadings are the ways of loading.
var loadings = []string{LoadProcess, LoadGlobal, LoadDevice, LoadReshard}

// Loading returns the way of loading.
func (l *Layout) Loading() string { return l.doc.loading() }

func (d *Document) loading() string {
	if d.Loading == "" {
		return LoadProcess
	}
	return d.Loading
}

// evenSpec returns the spec that splits the batch over all axes. It takes the
// axes in mesh order, and appends each to the entry of the first batch dimension
// that it still divides. If there is none for an axis, spec is nil and axis is
// its number; else axis is -1.
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

// addDelivered works out how every array is delivered.
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
		l.report(Error, Indivisible, "/batch/size",
			fmt.Sprintf(`with loading "reshard" the batch of %d is split over all %d devices, but %d %% %d = %d`, size[0], devices, size[0], devices, size[0]%devices),
			fmt.Sprintf(`use a batch of %s, or another way of loading`, sharding.Nearest(size[0], devices)),
			Fact{"size", int64(size[0])}, Fact{"tiles", int64(devices)}, Fact{"remainder", int64(size[0] % devices)})
		return
	}
	a := l.mesh.Axes()[axis]
	l.report(Error, Indivisible, "/batch/size",
		fmt.Sprintf(`with loading "reshard" the batch of shape %s is split over all axes, but axis %s (size %d) divides no batch dimension, after the axes before it`, wording.Shape(size), wording.Quote(a.Name), a.Size),
		fmt.Sprintf("make a batch dimension a multiple of %d, the number of devices, or use another way of loading", devices),
		Fact{"tiles", int64(devices)})
}

// checkLoading reports what another way of loading than the default costs.
func (l *Layout) checkLoading() {
	t := l.costs.totals
	if !l.costs.known || l.Loading() == LoadProcess || t.ReadBytes > MaxInteger {
		return
	}
	facts := []Fact{{"read_bytes", t.ReadBytes}, {"process_read_bytes", l.costs.least}}
	switch {
	case l.Loading() == LoadReshard:
		l.report(Info, Loading, "/loading",
			fmt.Sprintf(`%d bytes of a batch are read, and then at least %d move between devices, %d of them between processes; "process" reads %d, and nothing moves`, t.ReadBytes, t.InterconnectBytes, t.NetworkBytes, l.costs.least),
			"reshard every batch in the step, under jit", append(facts, Fact{"interconnect_bytes", t.InterconnectBytes}, Fact{"network_bytes", t.NetworkBytes})...)
	case t.ReadBytes > l.costs.least:
		l.report(Info, Loading, "/loading",
			fmt.Sprintf(`%d bytes are read for every batch, %s times the %d of "process"`, t.ReadBytes, wording.Ratio(t.ReadBytes, l.costs.least), l.costs.least),
			"leave loading out, unless you compare", facts...)
	}
}
