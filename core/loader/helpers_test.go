package loader_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// digits returns a dataset of small images and labels.
func digits(records int64) *synthetic.Source {
	return synthetic.New(records,
		source.Field{Name: "image", Type: dtype.Float32, Shape: []int{2, 4}},
		source.Field{Name: "label", Type: dtype.Int64})
}

// document returns a layout for digits: images over both axes of a 2×2 mesh of two
// processes, labels narrowed.
func document(size ...int) *layout.Document {
	tail := make(sharding.PartitionSpec, len(size)-1)
	lead := append(tail, []string{"data"})
	return &layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}, {Name: "model", Size: 2}}, Processes: 2},
		Arrays: []layout.ArraySpec{
			{Name: "image", RowShape: []int{2, 4}, Type: dtype.Float32, Spec: append(lead.Clone(), nil, []string{"model"})},
			{Name: "label", Type: dtype.Int32, Spec: lead},
		},
		Batch: &layout.BatchSpec{Size: size},
	}
}

func newLayout(t testing.TB, d *layout.Document) *layout.Layout {
	t.Helper()
	lay, err := layout.Draft(d)
	if err != nil {
		t.Fatal(err)
	}
	return lay
}

func newLoader(t testing.TB, src source.Source, o loader.Options) *loader.Loader {
	t.Helper()
	l, err := loader.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLoader(t, l) })
	return l
}

// closeLoader closes a loader and checks that no batch is live.
func closeLoader(t testing.TB, l *loader.Loader) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if s := l.Stats(); s.LiveBatches != 0 || s.LiveBytes != 0 || s.Queued != 0 {
		t.Errorf("after Close %d batches of %d bytes live, %d queued", s.LiveBatches, s.LiveBytes, s.Queued)
	}
}

// next takes one batch, checks every byte of it, and releases it.
func next(t testing.TB, l *loader.Loader) batch.Step {
	t.Helper()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	checkBytes(t, l, b)
	return b.Step()
}

func checkBytes(t testing.TB, l *loader.Loader, b *batch.Batch) {
	t.Helper()
	step := b.Step()
	records, err := l.Records(step.Cursor)
	if err != nil {
		t.Fatal(err)
	}
	want := synthetic.Batch{Records: records, Seed: l.State().Seed, Epoch: step.Epoch}
	for i, block := range l.Layout().Process(l.Process()).Blocks {
		a := l.Layout().Arrays()[block.Array]
		if !bytes.Equal(b.Memory().Dst(i), synthetic.Expect(a, block.Index, want)) {
			t.Fatalf("epoch %d position %d: block %d (%s%v) is wrong", step.Epoch, step.Position, i, a.Name, block.Index)
		}
	}
}

// loopSteps runs one loop and returns its steps.
func loopSteps(t testing.TB, l *loader.Loader) []batch.Step {
	t.Helper()
	var list []batch.Step
	for b, err := range l.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b.Step())
		b.Release()
	}
	return list
}

func wantError(t testing.TB, err error, code status.Code, text string) {
	t.Helper()
	if status.CodeOf(err) != code || err == nil || err.Error() != text {
		t.Errorf("got  %v: %v\nwant %v: %s", status.CodeOf(err), err, code, text)
	}
}
