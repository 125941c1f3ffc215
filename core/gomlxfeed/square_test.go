package gomlxfeed

import (
	"context"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// squareLayout has batches of 4 rows, with one array that is partitioned and one
// that is replicated on pairs of the four devices.
func squareLayout(t testing.TB, ids ...int) *layout.Layout {
	t.Helper()
	if ids == nil {
		ids = []int{2, 0, 3, 1}
	}
	spec := layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}, {Name: "model", Size: 2}}}
	for _, id := range ids {
		spec.Devices = append(spec.Devices, mesh.Device{ID: id})
	}
	lay, err := layout.New(&layout.Document{
		Mesh: spec,
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{6}, Type: dtype.Float32, Spec: sharding.P("data", "model")},
			{Name: "y", Type: dtype.Int32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lay
}

func squareSource(records int64) *synthetic.Source {
	return synthetic.New(records, source.Field{Name: "x", Type: dtype.Float32, Shape: []int{6}}, source.Field{Name: "y", Type: dtype.Int32})
}

// squareLoader loads 6 batches per epoch, into a ring if devices are given.
func squareLoader(t testing.TB, d *Devices, o loader.Options) *loader.Loader {
	t.Helper()
	o.Layout = squareLayout(t)
	if d != nil {
		o.Allocator = ringOf(t, d, o.Layout)
	}
	l, err := loader.New(squareSource(24), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func ringOf(t testing.TB, d *Devices, lay *layout.Layout) *Ring {
	t.Helper()
	ring, err := d.Ring(lay)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func wantText(t *testing.T, err error, code status.Code, text string) {
	t.Helper()
	if err == nil || status.CodeOf(err) != code || err.Error() != text {
		t.Errorf("got  %v: %v\nwant %v: %s", status.CodeOf(err), err, code, text)
	}
}

// bothKinds runs a test with shared memory and without it.
func bothKinds(t *testing.T, test func(t *testing.T, counts *countingBackend, d *Devices)) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) {
			counts, d := newCountingBackend(t, 4, shared)
			test(t, counts, d)
		})
	}
}

func next(t *testing.T, l *loader.Loader, d *Devices) *Batch {
	t.Helper()
	for b, err := range Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Fatal("there is no batch")
	return nil
}
