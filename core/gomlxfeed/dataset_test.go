package gomlxfeed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

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

// firstRow reads which record the first shard of y begins with.
func firstRow(t *testing.T, labels *dtensor.Tensor) int32 {
	t.Helper()
	var row int32
	err := labels.Shards()[0].ConstFlatData(func(flat any) { row = flat.([]int32)[0] })
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// countingLoader delivers its row numbers as y, in 6 steps of 4.
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

// draw takes up to most batches from a new iterator, which is then dropped, and
// gives their first rows. It owns what it gets.
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

// Iterators go on where the one before was dropped, over the ends of epochs.
func TestDatasetGoesOn(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
		for _, epochs := range []int{0, -1} {
			for _, into := range []*Devices{d, nil} {
				l := countingLoader(t, into, loader.Options{Epochs: epochs})
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
					t.Errorf("after 21 steps the loader stands at %v", at)
				}
				_ = l.Close()
			}
		}
		_ = d.Close()
		w.nothingLives(t, d)
	})
}

// With Epochs every iterator begins at the start, whatever the loader's own are.
func TestDatasetOfEpochs(t *testing.T) {
	_, d := newWitness(t, 4, true)
	for _, c := range []struct{ loader, dataset, want int }{{0, 1, 6}, {0, 2, 12}, {-1, 2, 12}, {2, 2, 12}, {1, 2, 6}, {3, 1, 6}, {2, 0, 12}} {
		o := xy
		o.Epochs = c.dataset
		ds := distributedOf(t, countingLoader(t, d, loader.Options{Epochs: c.loader}), d, o)
		for range 3 {
			rows := draw(t, ds, 100)
			if len(rows) != c.want || rows[0] != 0 || rows[len(rows)-1] != 20 {
				t.Errorf("%+v: %v", c, rows)
			}
			if c.dataset == 0 {
				c.want = 0 // the loader is at its end
				break
			}
			if rows := draw(t, ds, 2); !slices.Equal(rows, []int32{0, 4}) {
				t.Errorf("%+v: %v", c, rows)
			}
		}
	}
}

// Arrays come in the order that was asked for; others are freed.
func TestDatasetChooses(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
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
		ds := distributedOf(t, l, d, DatasetOptions{Name: "eval", Inputs: []string{"c", "valid"}, Labels: []string{"a"}, Epochs: 1})
		steps := 0
		for b, err := range ds.DistributedIter() {
			if err != nil {
				t.Fatal(err)
			}
			steps++
			if n := w.alive(); n != 3*2 {
				t.Errorf("%d buffers live, want those of 3 arrays on 2 devices", n)
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
		w.nothingLives(t, d)
	})
}

// Closing the loader ends an iterator in place, with an error.
func TestDatasetOfClosedLoader(t *testing.T) {
	for epochs := range 2 {
		_, d := newWitness(t, 4, true)
		l := countingLoader(t, d, loader.Options{})
		o := xy
		o.Epochs = epochs
		steps, failed := 0, error(nil)
		ds := distributedOf(t, l, d, o)
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
	_, d := newWitness(t, 4, true)
	l := squareLoader(t, d, loader.Options{})
	for _, c := range []struct {
		o    DatasetOptions
		code status.Code
		text string
	}{
		{DatasetOptions{}, status.InvalidArgument, `gomlxfeed: a trainer needs at least one input; name some of ["x" "y"] in DatasetOptions.Inputs`},
		{DatasetOptions{Inputs: []string{"x"}, Labels: []string{"valid"}}, status.NotFound, `gomlxfeed: the batch has no array "valid"; it has ["x" "y"]`},
		{DatasetOptions{Inputs: []string{"x"}, Labels: []string{"y", "x"}}, status.InvalidArgument,
			`gomlxfeed: array "x" is named twice, but a trainer frees each tensor that it gets; let the model return what the loss needs of it, or deliver the field as two arrays`},
		{DatasetOptions{Inputs: []string{"x"}, Epochs: -1}, status.InvalidArgument, "gomlxfeed: a dataset has at least 0 epochs, not -1; 0 is without end"},
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
	_, err = NewDistributedDataset(lineLoader(t, d, 0), d, xy)
	wantText(t, err, status.InvalidArgument, "gomlxfeed: the mesh has 1 device, but GoMLX distributes over at least 2; use NewDataset")
	_, err = NewDataset(lineLoader(t, d, 3), d, xy)
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

// lineLoader loads what a linear model learns, y = 3a - 2b + 1/2, in batches of
// 64 rows on a mesh of these devices.
func lineLoader(t *testing.T, d *Devices, ids ...int) *loader.Loader {
	t.Helper()
	x, y := make([]float32, 2*256), make([]float32, 256)
	for i := range y {
		x[2*i], x[2*i+1] = float32(i%16)/16, float32(i/16)/16
		y[i] = 3*x[2*i] - 2*x[2*i+1] + 0.5
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", x, 2), arrowio.Slice("y", y, 1))
	if err != nil {
		t.Fatal(err)
	}
	spec := layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: len(ids)}}}
	for _, id := range ids {
		spec.Devices = append(spec.Devices, mesh.Device{ID: id})
	}
	lay, err := layout.New(&layout.Document{
		Mesh: spec,
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{2}, Type: dtype.Float32, Spec: sharding.P("data")},
			{Name: "y", RowShape: []int{1}, Type: dtype.Float32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{64}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Allocator: ringOf(t, d, lay)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func lineTrainer(d *Devices) *train.Trainer {
	return train.NewTrainer(d.Backend(), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(s.In("dense"), x, true, 1)
	}, loss.MeanSquaredError, optimizer.Adam().LearningRate(0.1).Done(), nil, nil)
}

// trains trains in three runs, which go on one after the other, and evaluates
// with a loader of its own twice.
func trains(t *testing.T, d *Devices, l *loader.Loader, training, evaluation train.Dataset) {
	t.Helper()
	trainer := lineTrainer(d)
	loop := train.NewLoop(trainer)
	for range 3 {
		if _, err := loop.RunSteps(training, 101); err != nil {
			t.Fatal(err)
		}
	}
	if at := l.State(); at.Epoch != 75 || at.Position != 3*64 {
		t.Errorf("after 303 steps the loader stands at %v", at)
	}
	for range 2 {
		metrics, err := trainer.Eval(evaluation)
		if err != nil {
			t.Fatal(err)
		}
		if loss := metrics[0].Value().(float32); !(loss < 0.01) {
			t.Errorf("the loss is %v", loss)
		}
	}
	if n, bytes := d.Live(); n > 2*2*5*int64(d.Num()) { // two rings of two arrays, five batches each
		t.Errorf("%d buffers of %d bytes are live", n, bytes)
	}
}

func TestTrainerOnOneDevice(t *testing.T) {
	d := opened(t, "go")
	training, err := NewDataset(lineLoader(t, d, 0), d, xy)
	if err != nil {
		t.Fatal(err)
	}
	o := xy
	o.Epochs = 1
	evaluation, err := NewDataset(lineLoader(t, d, 0), d, o)
	if err != nil {
		t.Fatal(err)
	}
	trains(t, d, training.l, training, evaluation)
	closeAll(t, d, training.l, evaluation.l)
}

// The mesh has the devices in an order of its own.
func TestTrainerOnMesh(t *testing.T) {
	d := opened(t, "virtual:8")
	order := []int{3, 6, 1, 4, 7, 2, 5, 0}
	training := distributedOf(t, lineLoader(t, d, order...), d, xy)
	if training.Strategy() != distributed.AutoSharding || !slices.Equal(training.DeviceAssignment(), []compute.DeviceNum{3, 6, 1, 4, 7, 2, 5, 0}) {
		t.Errorf("%v on %v", training.Strategy(), training.DeviceAssignment())
	}
	o := xy
	o.Epochs = 1
	evaluation := distributedOf(t, lineLoader(t, d, order...), d, o)
	trains(t, d, training.l, training, evaluation)

	_, err := train.NewLoop(lineTrainer(d)).RunEpochs(training, 1)
	if err == nil || !strings.Contains(err.Error(), "train with Loop.RunSteps, which is distributed") {
		t.Errorf("RunEpochs: %v", err)
	}
	closeAll(t, d, training.l, evaluation.l)
}

func closeAll(t *testing.T, d *Devices, loaders ...*loader.Loader) {
	t.Helper()
	for _, l := range loaders {
		_ = l.Close()
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if n, bytes := d.Live(); n != 0 || bytes != 0 {
		t.Errorf("%d buffers of %d bytes are live", n, bytes)
	}
}
