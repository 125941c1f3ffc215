package layout

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// Ways of loading: what a process gathers for the devices it has. They are the
// four of JAX's guide to distributed data loading, and end in the same global
// arrays.
const (
	// LoadProcess gathers, in every process, every distinct index that its
	// devices hold, once. It is the default: nothing is read that is not
	// needed, and nothing moves afterwards.
	LoadProcess = "process"

	// LoadGlobal gathers the whole batch in every process, which keeps what
	// its devices hold. It reads as many times too much as there are
	// processes, and is there to compare with.
	LoadGlobal = "global"

	// LoadDevice gathers the index of every device by itself, into memory of
	// its own: replicas in one process are gathered again.
	LoadDevice = "device"

	// LoadReshard gathers an equal part of the rows for every device, whatever
	// the specs say: the batch dimensions are split over all axes of the mesh
	// ([Array.Delivered]). The user's program moves the parts to where the
	// specs want them ([Array.Sharding]); [Totals] says how many bytes that
	// takes.
	LoadReshard = "reshard"
)

var loadings = []string{LoadProcess, LoadGlobal, LoadDevice, LoadReshard}

// Loading gives the way of loading, LoadProcess unless the document says
// otherwise.
func (l *Layout) Loading() string { return l.doc.loading() }

func (d *Document) loading() string {
	if d.Loading == "" {
		return LoadProcess
	}
	return d.Loading
}

// evenSpec gives the spec by which the batch is split over all axes. In mesh
// order every axis goes to the first batch dimension that it still divides,
// behind the axes that stand there. The axis is the first that finds none.
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

// addDelivered says how every array is delivered.
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
		switch {
		case a.Sharding == nil || a.Kind == Static:
			a.Delivered = a.Sharding
		case axis < 0:
			l.deliverEvenly(i, spec)
		}
	}
}

// deliverEvenly cannot fail: the spec fits the batch, and names every axis once.
func (l *Layout) deliverEvenly(i int, spec sharding.PartitionSpec) {
	a := &l.arrays[i]
	s, err := sharding.New(l.mesh, spec)
	var t sharding.Tiling
	if err == nil {
		t, err = s.Tiling(a.Shape)
	}
	switch {
	case err != nil:
		l.report(Error, Indivisible, "/loading", err.Error(), "")
	case l.checkRanges(*a, t, "/loading"):
		a.Delivered, l.delivered[i] = s, t
	}
}

// reportUneven says that the batch cannot be split over all axes.
func (l *Layout) reportUneven(axis int) {
	size, devices := l.BatchShape(), l.mesh.Size()
	if len(size) == 1 {
		l.report(Error, Indivisible, "/batch/size",
			fmt.Sprintf(`with loading "reshard" the batch of %d is split over all %d devices, but %d %% %d = %d`, size[0], devices, size[0], devices, size[0]%devices),
			fmt.Sprintf(`use a batch of %s, or another way of loading`, nearest(size[0], devices)),
			Fact{"size", int64(size[0])}, Fact{"tiles", int64(devices)}, Fact{"remainder", int64(size[0] % devices)})
		return
	}
	a := l.mesh.Axes()[axis]
	l.report(Error, Indivisible, "/batch/size",
		fmt.Sprintf(`with loading "reshard" the batch of shape %s is split over all axes, but axis %s (size %d) divides no batch dimension, after the axes before it`, shapeText(size), quote(a.Name), a.Size),
		fmt.Sprintf("make a batch dimension a multiple of %d, the number of devices, or use another way of loading", devices),
		Fact{"tiles", int64(devices)})
}

// checkLoading says what another way of loading than the default costs.
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
			fmt.Sprintf(`%d bytes are read for every batch, %s times the %d of "process"`, t.ReadBytes, ratio(t.ReadBytes, l.costs.least), l.costs.least),
			"leave loading out, unless you compare", facts...)
	}
}

// loadingPieces says in words how a layout loads, where that is not the usual.
func (l *Layout) loadingPieces() []string {
	name := "loading " + quote(l.Loading())
	switch l.Loading() {
	case LoadGlobal:
		return []string{name, "every process reads the whole batch and keeps its part"}
	case LoadDevice:
		return []string{name, "every device's part is read by itself, replicas again"}
	case LoadReshard:
		spec, _ := l.evenSpec()
		t := l.costs.totals
		if !l.costs.known {
			return []string{name}
		}
		return []string{name, "the batch is read by " + plain(spec.String()), fmt.Sprintf("then at least %s move between devices", bytesText(t.InterconnectBytes)), bytesText(t.NetworkBytes) + " of them between processes"}
	}
	return nil
}
