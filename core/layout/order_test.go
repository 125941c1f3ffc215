package layout_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// rowsDocument has a batch of 32 rows on a mesh data=4, model=2.
func rowsDocument(processes int, specs ...sharding.PartitionSpec) *layout.Document {
	d := &layout.Document{
		Mesh:  layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}, Processes: processes},
		Batch: &layout.BatchSpec{Size: []int{32}},
	}
	for i, spec := range specs {
		d.Arrays = append(d.Arrays, layout.ArraySpec{Name: string(rune('a' + i)), Type: dtype.Int32, RowShape: []int{8}, Spec: spec})
	}
	return d
}

// devices assigns the eight devices of rowsDocument to processes.
func devices(processes ...int) []mesh.Device {
	var list []mesh.Device
	for id, p := range processes {
		list = append(list, mesh.Device{Process: p, ID: id})
	}
	return list
}

func TestLocalOrder(t *testing.T) {
	split, model, whole := sharding.P("data"), sharding.P(nil, "model"), sharding.P()
	on := func(d *layout.Document, processes ...int) *layout.Document {
		d.Mesh.Processes, d.Mesh.Devices = 0, devices(processes...)
		return d
	}
	sized := func(d *layout.Document, size ...int) *layout.Document {
		d.Batch.Size = size
		return d
	}
	loading := func(d *layout.Document, way string) *layout.Document {
		d.Loading = way
		return d
	}
	for _, c := range []struct {
		what string
		d    *layout.Document
		want int64
	}{
		{"a block per process", rowsDocument(4, split), 4},
		{"two processes with two blocks each", rowsDocument(2, split), 2},
		{"one process", rowsDocument(1, split), 1},
		{"two processes per block", rowsDocument(8, split), 4},
		{"no split of rows", rowsDocument(4, whole, model), 1},
		{"one array split, one not", rowsDocument(4, split, whole), 4},
		{"processes 0 and 2 hold the same", on(rowsDocument(0, split), 0, 2, 0, 2, 1, 3, 1, 3), 2},
		{"scattered blocks", on(rowsDocument(0, split), 0, 0, 1, 1, 0, 0, 1, 1), 4},
		{"three blocks and one", on(rowsDocument(0, split), 0, 0, 0, 0, 0, 0, 1, 1), 4},
		{"two batch dimensions", sized(rowsDocument(4, sharding.P(nil, "data")), 4, 8), 16},
		{"the outer of two", sized(rowsDocument(4, split), 4, 8), 4},
		{"every process reads all", loading(rowsDocument(4, split), layout.LoadGlobal), 4},
		{"rows are split otherwise first", loading(rowsDocument(4, whole), layout.LoadReshard), 1},
	} {
		l, err := layout.Draft(c.d)
		if err != nil {
			t.Fatal(err)
		}
		if name, err := l.DerivedOrder(layout.OrderLocal, 1000, nil); err != nil || name != sampler.Local(c.want, 32) {
			t.Errorf("%s: got %s, %v, want %d parts", c.what, name, err, c.want)
		}
	}
}

func TestLocalOrderIsNamed(t *testing.T) {
	d := rowsDocument(4, sharding.P("data"))
	d.Dataset = &layout.DatasetSpec{Records: 1000, Order: layout.OrderLocal, Seed: 3}
	l, err := layout.Draft(d)
	if err != nil || l.Err() != nil {
		t.Fatal(err, l.Err())
	}
	if got := l.Document().Dataset.Order; got != "local.1:4:32" || d.Dataset.Order != layout.OrderLocal {
		t.Errorf("the layout's document says %q, the one given %q", got, d.Dataset.Order)
	}
	again, err := document.Parse(document.Canonical(l.Document()))
	if err != nil || again.Dataset.Order != "local.1:4:32" {
		t.Errorf("read again as %+v, %v", again, err)
	}
}

func TestLocalOrderRefused(t *testing.T) {
	broken := rowsDocument(4, sharding.P("date"))
	broken.Dataset = &layout.DatasetSpec{Records: 1000, Order: layout.OrderLocal}
	l, err := layout.Draft(broken)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Problems()) != 1 || l.Problems()[0].Code != layout.UnknownAxis {
		t.Errorf("problems %+v, want only the axis", l.Problems())
	}
	const want = `layout: order "local" needs a batch of arrays without errors`
	if _, err := l.DerivedOrder(layout.OrderLocal, 1000, nil); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	pieces := rowsDocument(1, sharding.P(nil, "data"))
	pieces.Batch.Size = []int{1 << 20, 8}
	pieces.Mesh.Processes = 4
	pieces.Dataset = &layout.DatasetSpec{Records: 1 << 30, Order: layout.OrderLocal}
	if l, err = layout.Draft(pieces); err != nil {
		t.Fatal(err)
	}
	const text = `layout: the rows of every process lie in too many pieces for order "local"; partition the first batch dimension rather than a later one, or shuffle`
	if _, err := l.DerivedOrder(layout.OrderLocal, 1000, nil); err == nil || err.Error() != text {
		t.Errorf("got %v", err)
	}
	if err := l.Err(); err == nil || err.Error() != text {
		t.Errorf("the problem is %v", err)
	}
	wrong := rowsDocument(4, sharding.P("data"))
	wrong.Dataset = &layout.DatasetSpec{Records: 1000, Order: "local.1:3:32"}
	if l, err = layout.Draft(wrong); err != nil {
		t.Fatal(err)
	}
	const third = `layout: order "local.1:3:32" has 3 parts, which do not divide a batch of 32: 32 % 3 = 2; use the name in the state of the first loader`
	if err := l.Err(); err == nil || err.Error() != third {
		t.Errorf("got %v", err)
	}
}

// An order without parameters may be named without its version.
func TestShortOrders(t *testing.T) {
	for short, full := range map[string]string{"sequential": sampler.Sequential, "shuffle": sampler.Shuffle} {
		d := simple()
		d.Dataset = &layout.DatasetSpec{Records: 100, Order: short}
		l, err := layout.New(d)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Document().Dataset.Order; got != full || d.Dataset.Order != short {
			t.Errorf("%q has become %q", short, got)
		}
	}
}
