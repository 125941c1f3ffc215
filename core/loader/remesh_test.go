package loader_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	layoutjson "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// strip returns a layout for digits: all arrays over one axis.
func strip(devices, batch int, remainder string) *layout.Document {
	spec := sharding.P("data")
	return &layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: devices}}, Processes: devices},
		Arrays: []layout.ArraySpec{
			{Name: "image", RowShape: []int{2, 4}, Type: dtype.Float32, Spec: spec},
			{Name: "label", Type: dtype.Int32, Spec: spec},
		},
		Batch: &layout.BatchSpec{Size: []int{batch}, Remainder: remainder},
	}
}

func remesh(t *testing.T, l *loader.Loader, lay *layout.Layout, process int) *loader.Loader {
	t.Helper()
	next, err := l.Remesh(lay, process, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLoader(t, next) })
	return next
}

func TestRemeshContinues(t *testing.T) {
	src := digits(100)
	old := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Process: 1, Shuffle: true, Seed: 3})
	next(t, old)
	kept, err := old.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pass, err := old.OneEpoch(5)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLoader(t, pass)
	next(t, pass)

	l := remesh(t, old, newLayout(t, strip(4, 12, layout.Drop)), 3)
	if l.State() != old.State() || l.State().Position != 16 || l.State().Order != "shuffle.1" {
		t.Errorf("the state is %v, it was %v", l.State(), old.State())
	}
	if got, was := l.Stats().Batches, old.Stats().Batches; got != 2 || was != 2 {
		t.Errorf("%d batches are counted, %d before", got, was)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for position := int64(16); position+12 <= 100; position += 12 {
		if p := next(t, l); p.Cursor != (batch.Cursor{Position: position}) {
			t.Fatalf("a batch starts at %v, want position %d", p.Cursor, position)
		}
	}
	if _, err := l.Next(t.Context()); status.CodeOf(err) != status.End {
		t.Errorf("the loop continues after its epoch: %v", err)
	}
	if p := next(t, pass); p.Cursor != (batch.Cursor{Epoch: 5, Position: 8}) {
		t.Errorf("the pass continues at %v", p.Cursor)
	}
	checkBytes(t, old, kept)
	kept.Release()
	if n := src.Counts().Gatherers; n != 2 {
		t.Errorf("%d gatherers are open, want one for the new loader and one for the pass", n)
	}
}

// A loop at the end of its epoch ends on the new mesh, too. The next loop is the next
// epoch.
func TestRemeshBetweenEpochs(t *testing.T) {
	old := newLoader(t, digits(16), loader.Options{Layout: newLayout(t, document(8)), Shuffle: true})
	next(t, old)
	next(t, old)
	l := remesh(t, old, newLayout(t, strip(2, 8, layout.Drop)), 0)
	if _, err := l.Next(t.Context()); status.CodeOf(err) != status.End {
		t.Fatalf("the loop has not ended: %v", err)
	}
	if p := next(t, l); p.Cursor != (batch.Cursor{Epoch: 1}) {
		t.Errorf("the next loop begins at %v", p.Cursor)
	}
}

// If a position leaves no step of the new batch size, the next epoch begins.
func TestRemeshAtTheEndOfAnEpoch(t *testing.T) {
	old := newLoader(t, digits(20), loader.Options{Layout: newLayout(t, document(8)), Epochs: -1})
	next(t, old)
	next(t, old) // 16 of 20 were delivered; the last 4 are dropped
	if c := old.State().Cursor(); c != (batch.Cursor{Epoch: 1}) {
		t.Fatalf("the cursor is %v", c)
	}
	small := remesh(t, old, newLayout(t, strip(2, 6, layout.Drop)), 0)
	for range 2 {
		next(t, small) // 12 of 20
	}
	l := remesh(t, small, newLayout(t, strip(2, 12, layout.Drop)), 1)
	if c := l.State().Cursor(); c != (batch.Cursor{Epoch: 2}) {
		t.Errorf("the cursor is %v", c)
	}
}

func TestRemeshRefused(t *testing.T) {
	l := newLoader(t, digits(48), loader.Options{Layout: newLayout(t, document(8)), Seed: 3, Shuffle: true})
	next(t, l)
	refused := func(lay *layout.Layout, process int, code status.Code, text string) {
		t.Helper()
		_, err := l.Remesh(lay, process, nil)
		wantError(t, err, code, text)
	}
	refused(nil, 0, status.InvalidArgument, "loader: there is no layout; give the layout to continue with")
	refused(newLayout(t, strip(5, 48, "")), 0, status.InvalidArgument,
		`layout: dimension 0 of array "image" of shape (48, 2, 4) is split 5 ways by axis "data" (size 5), but 48 % 5 = 3; use a batch of 45 or 50`+"\n"+
			`layout: dimension 0 of array "label" of shape (48,) is split 5 ways by axis "data" (size 5), but 48 % 5 = 3; use a batch of 45 or 50`)
	refused(newLayout(t, strip(2, 8, "")), -1, status.OutOfRange, "loader: Options.Process is -1, but the layout has processes 0 to 1; number processes from 0; if the run has processes outside the mesh, say in Options.Processes how many it has")
	refused(newLayout(t, strip(2, 16, layout.Refuse)), 0, status.InvalidArgument,
		`loader: position 8 leaves 40 of 48 records, and 40 % 16 = 8, but the remainder is "error"; continue at a multiple of the batch size, or with remainder "drop" or "pad"`)
	other := strip(2, 8, "")
	other.Dataset = &layout.DatasetSpec{Records: 49}
	refused(newLayout(t, other), 0, status.Incompatible,
		"loader: the layout is for a dataset of 49 records, but this one has 48; open the dataset that was planned for, or change /dataset/records")

	if p := next(t, l); p.Position != 8 {
		t.Errorf("after all errors the loader continues at %d", p.Position)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	refused(newLayout(t, strip(2, 8, "")), 0, status.InvalidState, "loader: the loader is closed")
}

// Many devices, 8 per process, over two axes.
func bigMesh(t testing.TB, devices int) *layout.Document {
	d := strip(1, 2*devices, "")
	d.Mesh = layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: devices / 4}, {Name: "model", Size: 4}}}
	for i := range devices {
		d.Mesh.Devices = append(d.Mesh.Devices, mesh.Device{Process: i / 8, ID: i})
	}
	d.Arrays[0].Spec = sharding.P("data", nil, "model")
	return d
}

// BenchmarkRemesh changes from one mesh to another and back. It parses, checks and
// plans the text of the new layout, as a call from another language does.
func BenchmarkRemesh(b *testing.B) {
	for _, devices := range []int{64, 512, 4096} {
		b.Run(fmt.Sprintf("devices=%d", devices), func(b *testing.B) {
			text := layoutjson.Canonical(bigMesh(b, devices))
			l := newLoader(b, digits(1<<20), loader.Options{Layout: newLayout(b, document(64)), Shuffle: true})
			for b.Loop() {
				d, err := layoutjson.Parse(text)
				if err != nil {
					b.Fatal(err)
				}
				other, err := l.Remesh(newLayout(b, d), devices/16, nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := other.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
