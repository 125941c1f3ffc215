package conformance

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestGoMLX places every case of the tables on virtual devices, in a random order
// and with a random type. It reads every shard back from its device. The shard
// must be the index of the global batch that JAX assigns to that position of the
// mesh. Axes are renamed, because GoMLX accepts identifiers only. Scalars and
// batches without rows are left out, because no batch can be one.
func TestGoMLX(t *testing.T) {
	r := random.New(t)
	all, done := read(t), 0
	for i, row := range all.Cases {
		if len(row.Shape) > 0 && row.Shape[0] > 0 {
			row.place(t, fmt.Sprintf("case %d", i), r, all.Meshes[row.Mesh])
			done++
		}
	}
	if done < 3000 {
		t.Errorf("%d cases were placed, want at least 3,000", done)
	}
	t.Logf("%d cases", done)
}

// place places one case.
func (row caseRow) place(t *testing.T, what string, r *rand.Rand, on meshRow) {
	t.Helper()
	lay := row.layout(t, r, on)
	devices, err := gomlxfeed.Open(context.Background(), fmt.Sprintf("virtual:%d", lay.Mesh().Size()))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer devices.Close()
	o := loader.Options{Layout: lay, Prefetch: -1}
	if r.IntN(2) == 0 {
		if o.Allocator, err = devices.Ring(lay); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	field := source.Field{Name: "x", Type: lay.Arrays()[0].Type, Shape: row.Shape[1:]}
	l, err := loader.New(synthetic.New(int64(row.Shape[0]), field), o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer l.Close()
	for b, err := range gomlxfeed.Placed(context.Background(), l, devices) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		row.check(t, what, lay, b)
		b.Release()
	}
}

// layout makes the case a batch of all its rows.
func (row caseRow) layout(t *testing.T, r *rand.Rand, on meshRow) *layout.Layout {
	t.Helper()
	d := &layout.Document{Batch: &layout.BatchSpec{Size: row.Shape[:1]}}
	names := map[string]string{}
	for i, a := range on.Axes {
		names[a.Name] = fmt.Sprintf("axis_%d", i)
		d.Mesh.Axes = append(d.Mesh.Axes, mesh.Axis{Name: names[a.Name], Size: a.Size})
	}
	if len(d.Mesh.Axes) == 0 { // GoMLX has no mesh without axes
		d.Mesh.Axes = []mesh.Axis{{Name: "only", Size: 1}}
	}
	for _, id := range r.Perm(len(on.Devices)) {
		d.Mesh.Devices = append(d.Mesh.Devices, mesh.Device{ID: id})
	}
	a := layout.ArraySpec{Name: "x", RowShape: row.Shape[1:], Type: random.Type(r)}
	for _, entry := range specOf(t, row.Spec) {
		var axes []string
		for _, name := range entry {
			axes = append(axes, names[name])
		}
		a.Spec = append(a.Spec, axes)
	}
	d.Arrays = []layout.ArraySpec{a}
	lay, err := layout.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return lay
}

func specOf(t *testing.T, entries []any) sharding.PartitionSpec {
	t.Helper()
	spec, err := sharding.NewSpec(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func (row caseRow) check(t *testing.T, what string, lay *layout.Layout, b *gomlxfeed.Batch) {
	t.Helper()
	records := make([]int64, row.Shape[0])
	for i := range records {
		records[i] = int64(i)
	}
	expected := make([][]byte, len(row.Distinct))
	for i, index := range row.Distinct {
		expected[i] = synthetic.Expect(lay.Arrays()[0], index, synthetic.Batch{Records: records})
	}
	for position, number := range row.Device {
		got := make([]byte, len(expected[number]))
		if err := b.Read("x", position, got); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !bytes.Equal(got, expected[number]) {
			t.Fatalf("%s: position %d of %s holds %x, not %s: %x", what, position, document.Canonical(lay.Document()), got, row.Distinct[number], expected[number])
		}
	}
}
