package gomlxfeed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

var xy = DatasetOptions{Inputs: []string{"x"}, Labels: []string{"y"}}

func distributedOf(t *testing.T, l *loader.Loader, d *Devices, o DatasetOptions) *DistributedDataset {
	t.Helper()
	ds, err := NewDistributedDataset(l, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// firstRow returns the first record number of the first shard of y.
func firstRow(t *testing.T, labels *dtensor.Tensor) int32 {
	t.Helper()
	var row int32
	err := labels.Shards()[0].ConstFlatData(func(flat any) { row = flat.([]int32)[0] })
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// countingLoader delivers record numbers as y, in 6 steps of 4 rows.
func countingLoader(t *testing.T, d *Devices, o loader.Options) *loader.Loader {
	t.Helper()
	x, y := make([]float32, 24*6), make([]int32, 24)
	for i := range y {
		y[i] = int32(i)
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", x, 6), arrowio.Slice("y", y))
	if err != nil {
		t.Fatal(err)
	}
	o.Layout = squareLayout(t)
	if d != nil {
		o.Allocator = ringOf(t, d, o.Layout)
	}
	l, err := loader.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// draw takes up to most batches from a new iterator, abandons the iterator, and
// returns the first row of each batch. It frees the tensors, as their owner.
func draw(t *testing.T, ds *DistributedDataset, most int) (rows []int32) {
	t.Helper()
	for b, err := range ds.DistributedIter() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, firstRow(t, b.Labels[0]))
		if err := b.Finalize(); err != nil {
			t.Fatal(err)
		}
		if len(rows) == most {
			break
		}
	}
	return rows
}

// Without end, an iterator continues where the previous one was abandoned, across
// epochs.
func TestDatasetContinues(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		for _, into := range []*Devices{d, nil} {
			l := countingLoader(t, into, loader.Options{Epochs: -1})
			ds := distributedOf(t, l, d, xy)
			var rows []int32
			for n := 1; n < 7; n++ {
				rows = append(rows, draw(t, ds, n)...)
			}
			for i, row := range rows {
				if row != int32(i%6*4) {
					t.Fatalf("step %d begins with row %d", i, row)
				}
			}
			if at := l.State(); at.Epoch != 3 || at.Position != 12 {
				t.Errorf("after 21 steps the loader is at %v", at)
			}
			_ = l.Close()
		}
		if n := len(d.rings); n != 1 { // the ring of one loader; the rings of iterators are closed
			t.Errorf("%d rings are registered with the devices", n)
		}
		_ = d.Close()
		counts.nothingLives(t, d)
	})
}

// An iterator yields one epoch, or the rest of it.
func TestDatasetOfEpochs(t *testing.T) {
	_, d := newCountingBackend(t, 4, true)
	for _, epochs := range []int{0, 3} {
		ds := distributedOf(t, countingLoader(t, d, loader.Options{Epochs: epochs}), d, xy)
		var lengths []int
		for _, most := range []int{100, 2, 100, 6} { // the last one is abandoned at the end of an epoch
			lengths = append(lengths, len(draw(t, ds, most)))
		}
		if want := []int{6, 2, 4, 6}; !slices.Equal(lengths, want) {
			t.Errorf("Epochs %d: iterators of %d batches, want %d", epochs, lengths, want)
		}
		if epochs == 0 {
			if rows := draw(t, ds, 100); len(rows) != 6 || rows[0] != 0 {
				t.Errorf("the next epoch begins with the rows %d", rows)
			}
			continue
		}
		for range 2 {
			n := 0
			for _, err := range ds.DistributedIter() {
				n++
				wantText(t, err, status.InvalidState, `gomlxfeed: dataset "meshfeed" has no further batch: its loader ended before epoch 3; with loader.Options.Epochs = 0 each iterator yields another epoch`)
			}
			if n != 1 {
				t.Errorf("the iterator yielded %d times", n)
			}
		}
	}
}

// Arrays arrive in the requested order; the others are freed.
func TestDatasetChooses(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		lay, err := layout.New(&layout.Document{
			Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}}},
			Arrays: []layout.ArraySpec{
				{Name: "a", Field: "y", Type: dtype.Int32, Spec: sharding.P("data")},
				{Name: "b", Field: "x", RowShape: []int{6}, Type: dtype.Float32, Spec: sharding.P("data")},
				{Name: "c", Field: "y", Type: dtype.Int32},
			},
			Batch: &layout.BatchSpec{Size: []int{10}, Remainder: layout.Pad, Extras: []string{layout.ExtraKey}},
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := loader.New(squareSource(24), loader.Options{Layout: lay, Allocator: ringOf(t, d, lay), Prefetch: -1})
		if err != nil {
			t.Fatal(err)
		}
		ds := distributedOf(t, l, d, DatasetOptions{Name: "eval", Inputs: []string{"c", "valid"}, Labels: []string{"a"}})
		steps := 0
		for b, err := range ds.DistributedIter() {
			if err != nil {
				t.Fatal(err)
			}
			steps++
			if n := counts.alive(); n != 3*2 {
				t.Errorf("%d buffers live, want the buffers of 3 arrays on 2 devices", n)
			}
			got := fmt.Sprint(len(b.Inputs), b.Inputs[0].Shape(), b.Inputs[1].Shape(), len(b.Labels), b.Labels[0].ShardShape())
			if want := "2 (Int32)[10] (Bool)[10] 1 (Int32)[5]"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			_ = b.Finalize()
		}
		if steps != 3 || ds.Name() != "eval" || ds.ShortName() != "eva" {
			t.Errorf("%d steps of %q (%q)", steps, ds.Name(), ds.ShortName())
		}
		_ = l.Close()
		_ = d.Close()
		counts.nothingLives(t, d)
	})
}

// Closing the loader ends a running iterator with an error.
func TestDatasetOfClosedLoader(t *testing.T) {
	for epochs := range 2 {
		_, d := newCountingBackend(t, 4, true)
		l := countingLoader(t, d, loader.Options{Epochs: epochs})
		steps, failed := 0, error(nil)
		ds := distributedOf(t, l, d, xy)
		for b, err := range ds.DistributedIter() {
			if failed = err; err != nil {
				continue // it was the last
			}
			_ = b.Finalize()
			if steps++; steps == 2 {
				_ = l.Close()
			}
		}
		wantText(t, failed, status.InvalidState, "loader: the loader is closed")
		if steps != 2 {
			t.Errorf("%d steps", steps)
		}
		for _, err := range ds.DistributedIter() {
			wantText(t, err, status.InvalidState, "loader: the loader is closed")
		}
	}
}

func TestDatasetErrors(t *testing.T) {
	_, d := newCountingBackend(t, 4, true)
	l := squareLoader(t, d, loader.Options{})
	for _, c := range []struct {
		o    DatasetOptions
		code status.Code
		text string
	}{
		{DatasetOptions{}, status.InvalidArgument, `gomlxfeed: a trainer needs at least one input; name some of ["x" "y"] in DatasetOptions.Inputs`},
		{DatasetOptions{Inputs: []string{"x"}, Labels: []string{"valid"}}, status.NotFound, `gomlxfeed: the batch has no array "valid"; it has ["x" "y"]`},
		{DatasetOptions{Inputs: []string{"x"}, Labels: []string{"y", "x"}}, status.InvalidArgument,
			`gomlxfeed: array "x" is named twice, but a trainer frees each tensor that it gets; let the model return the values that the loss needs, or deliver the field as two arrays`},
	} {
		_, err := NewDistributedDataset(l, d, c.o)
		wantText(t, err, c.code, c.text)
	}
	_, err := NewDistributedDataset(nil, d, xy)
	wantText(t, err, status.InvalidArgument, "gomlxfeed: a loader and devices are needed")
	_, err = NewDataset(nil, d, xy)
	wantText(t, err, status.InvalidArgument, "gomlxfeed: a loader and devices are needed")
	_, err = NewDataset(l, d, xy)
	wantText(t, err, status.InvalidArgument, "gomlxfeed: the mesh has 4 devices, but a Dataset feeds one; use NewDistributedDataset")
	_, err = NewDistributedDataset(lineLoader(t, d, 0, 0), d, xy)
	wantText(t, err, status.InvalidArgument, "gomlxfeed: the mesh has 1 device, but GoMLX distributes over at least 2; use NewDataset")
	_, err = NewDataset(lineLoader(t, d, 0, 3), d, xy)
	wantText(t, err, status.Unsupported, "gomlxfeed: the mesh is device 3, but GoMLX's trainer computes on device 0; make the mesh of device 0")

	for b, err := range distributedOf(t, l, d, xy).Iter() {
		wantText(t, err, status.Unsupported, `gomlxfeed: dataset "meshfeed" is for 4 devices, but was asked for batches on one; train with Loop.RunSteps, which is distributed; Loop.RunEpochs is not`)
		if b.Inputs != nil {
			t.Error("there is a batch")
		}
	}
	if n, _ := d.Live(); n != 0 {
		t.Errorf("%d live", n)
	}
}

func TestDatasetEndsWithItsContext(t *testing.T) {
	d := opened(t, "virtual:4")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := xy
	o.Context = ctx
	ds := distributedOf(t, countingLoader(t, d, loader.Options{Epochs: -1}), d, o)
	n := 0
	for b, err := range ds.DistributedIter() {
		if err != nil {
			if !errors.Is(err, context.Canceled) || n != 2 {
				t.Errorf("after %d batches: %v", n, err)
			}
			return
		}
		if n++; n == 2 {
			cancel()
		}
		for _, array := range append(b.Inputs, b.Labels...) {
			if err := array.Finalize(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Error("the iterator ended without the context's error")
}
