package loader_test

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// wide returns a layout for digits: rows over the first axis of a mesh of some processes
// with two devices each.
func wide(processes, size int) *layout.Document {
	d := document(size)
	d.Mesh = layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: processes}, {Name: "model", Size: 2}}, Processes: processes}
	return d
}

// On the mesh of the order, each process reads its own contiguous part in every
// epoch.
func TestLocalOrderIsLocal(t *testing.T) {
	const records, processes, size = 1000, 4, 32
	lay := newLayout(t, wide(processes, size))
	for process := range processes {
		src := digits(records)
		l := newLoader(t, src, loader.Options{Layout: lay, Process: process, Order: layout.OrderLocal, Seed: 5, Epochs: 3})
		if got := l.State().Order; got != "local.1:4:32" {
			t.Fatalf("the order is %q", got)
		}
		loopSteps(t, l)
		low, high := int64(process*records/processes), int64((process+1)*records/processes)
		read := src.Counts().Rows
		for r := range read {
			if r < low || r >= high {
				t.Errorf("process %d reads record %d, outside [%d, %d)", process, r, low, high)
			}
		}
		if n := len(read); n < 248 {
			t.Errorf("process %d reads %d records of its 250", process, n)
		}
	}
}

// sequenceOf returns the records of the next steps of a loader.
func sequenceOf(t *testing.T, l *loader.Loader, rows int) (list []int64) {
	t.Helper()
	for len(list) < rows {
		step := next(t, l)
		records, err := l.Records(step.Cursor)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, records[:step.Valid]...)
	}
	return list
}

// A state contains the order's parameters. So the sequence continues on any mesh and
// with any batch size.
func TestLocalOrderOnOtherTopologies(t *testing.T) {
	local := loader.Options{Layout: newLayout(t, wide(4, 32)), Order: layout.OrderLocal, Seed: 5, Epochs: -1}
	first := newLoader(t, digits(1000), local)
	sequenceOf(t, first, 320)
	state := first.State().JSON()
	want := sequenceOf(t, first, 480)
	for _, c := range []struct{ processes, size int }{{2, 32}, {1, 48}, {8, 16}, {3, 24}, {4, 160}} {
		lay := newLayout(t, wide(c.processes, c.size))
		o := loader.Options{Layout: lay, Order: layout.OrderLocal, Seed: 5, Epochs: -1, State: state}
		made := newLoader(t, digits(1000), o)
		o.State = nil
		restored := newLoader(t, digits(1000), o)
		own := restored.State().Order
		if own != sampler.Local(int64(c.processes), int64(c.size)) {
			t.Errorf("without a state the order is %s", own)
		}
		next(t, restored)
		if err := restored.Restore(state, false); err != nil {
			t.Fatal(err)
		}
		for what, l := range map[string]*loader.Loader{"made with the state": made, "restored": restored} {
			if got := sequenceOf(t, l, 480); !slices.Equal(got, want) {
				t.Errorf("%d processes, batches of %d, %s: other records", c.processes, c.size, what)
			}
			if got := l.State(); got.Order != "local.1:4:32" {
				t.Errorf("%s: the state is %v", what, got)
			}
			if c := certificateOf(t, l); c.Order != "local.1:4:32" || len(c.Runs()) != 1 || c.Runs()[0].Delivered[0].First != 320 {
				t.Errorf("%s: %v", what, c)
			}
		}
		pass, err := restored.OneEpoch(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := pass.State().Order; got != "local.1:4:32" {
			t.Errorf("the order of a pass is %s", got)
		}
		if err := pass.Close(); err != nil {
			t.Error(err)
		}
	}
}

// After a Restore that changes the order, no batch of the old order is delivered,
// even if it has the same position.
func TestLocalOrderChangesAtOnce(t *testing.T) {
	lay := newLayout(t, wide(4, 32))
	for _, prefetch := range []int{-1, 8} { // the step is announced, or its batch is ready
		l := newLoader(t, digits(1000), loader.Options{Layout: lay, Order: layout.OrderLocal, Prefetch: prefetch, Epochs: -1})
		for _, name := range []string{"local.1:2:32", "local.1:8:64", "local.1:4:32"} {
			next(t, l)
			saved := l.State()
			saved.Order = name
			if err := l.Restore(saved.JSON(), false); err != nil {
				t.Fatal(err)
			}
			order, err := sampler.New(name, 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]int64, 32)
			order.Epoch(0).Fill(want, saved.Position)
			if got := sequenceOf(t, l, 32); !slices.Equal(got, want) {
				t.Errorf("%s, prefetch %d: got %v, want %v", name, prefetch, got, want)
			}
		}
	}
}

func TestLocalOrderRefused(t *testing.T) {
	lay := newLayout(t, wide(4, 32))
	l := newLoader(t, digits(1000), loader.Options{Layout: lay, Order: layout.OrderLocal})
	named := newLoader(t, digits(1000), loader.Options{Layout: lay, Order: "local.1:4:32"})
	state := l.State()
	restore := func(l *loader.Loader, order string) error {
		s := state
		s.Order = order
		return l.Restore(s.JSON(), false)
	}
	const hint = "; continue with the dataset, order and seed that were saved"
	wantError(t, restore(l, "shuffle.1"), status.Incompatible, `loader: the saved state is of another run: order saved "shuffle.1", live "local.1:4:32"`+hint)
	wantError(t, restore(named, "local.1:2:32"), status.Incompatible, `loader: the saved state is of another run: order saved "local.1:2:32", live "local.1:4:32"`+hint)
	wantError(t, restore(l, "local.1:3:32"), status.InvalidArgument,
		`sampler: order "local.1:3:32" has 3 parts, which do not divide a batch of 32: 32 % 3 = 2; use the name in the state of the first loader`)
	if l.State() != state {
		t.Errorf("a refused state moved the loader to %v", l.State())
	}
	pieces := document(1<<20, 8)
	pieces.Mesh = wide(4, 32).Mesh
	_, err := loader.New(digits(1<<24), loader.Options{Layout: newLayout(t, pieces), Order: layout.OrderLocal})
	wantError(t, err, status.InvalidArgument, `layout: the rows of every process lie in too many pieces for order "local"; partition the first batch dimension rather than a later one, or shuffle`)
}

// If the document names the local order, its parameters are the layout's.
func TestLocalOrderOfTheDocument(t *testing.T) {
	d := wide(4, 32)
	d.Dataset = &layout.DatasetSpec{Records: 1000, Order: layout.OrderLocal, Seed: 9}
	l := newLoader(t, digits(1000), loader.Options{Layout: newLayout(t, d)})
	if s := l.State(); s.Order != "local.1:4:32" || s.Seed != 9 {
		t.Errorf("the state is %v", s)
	}
	if err := l.Seek(batch.Cursor{Position: 970}); err != nil || l.State().Epoch != 1 {
		t.Errorf("the rest of an epoch: %v, %v", l.State(), err)
	}
}
