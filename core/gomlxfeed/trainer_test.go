package gomlxfeed

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/graph"
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
)

// lineLoader loads data for a linear model, y = 3a - 2b + 1/2, in batches of 64
// rows on a mesh of these devices. An epoch has 4 batches.
func lineLoader(t *testing.T, d *Devices, epochs int, ids ...int) *loader.Loader {
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
	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Epochs: epochs, Allocator: ringOf(t, d, lay)})
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

// trains trains in three runs. Each continues the previous one. It evaluates
// twice with a separate loader.
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
		t.Errorf("after 303 steps the loader is at %v", at)
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
	training, err := NewDataset(lineLoader(t, d, -1, 0), d, xy)
	if err != nil {
		t.Fatal(err)
	}
	evaluation, err := NewDataset(lineLoader(t, d, 0, 0), d, xy)
	if err != nil {
		t.Fatal(err)
	}
	trains(t, d, training.l, training, evaluation)
	closeAll(t, d, training.l, evaluation.l)
}

// The device order of the mesh differs from the numbers of the devices.
func TestTrainerOnMesh(t *testing.T) {
	d := opened(t, "virtual:8")
	order := []int{3, 6, 1, 4, 7, 2, 5, 0}
	training := distributedOf(t, lineLoader(t, d, -1, order...), d, xy)
	if training.Strategy() != distributed.AutoSharding || !slices.Equal(training.DeviceAssignment(), []compute.DeviceNum{3, 6, 1, 4, 7, 2, 5, 0}) {
		t.Errorf("%v on %v", training.Strategy(), training.DeviceAssignment())
	}
	evaluation := distributedOf(t, lineLoader(t, d, 0, order...), d, xy)
	trains(t, d, training.l, training, evaluation)

	_, err := train.NewLoop(lineTrainer(d)).RunEpochs(training, 1)
	if err == nil || !strings.Contains(err.Error(), "train with Loop.RunSteps, which is distributed") {
		t.Errorf("RunEpochs: %v", err)
	}
	closeAll(t, d, training.l, evaluation.l)
}

// RunEpochs trains as many epochs as it is told, or fails.
func TestTrainerRunsEpochs(t *testing.T) {
	d := opened(t, "go")
	for _, c := range []struct {
		epochs, run int
		err         string
	}{
		{0, 1, ""},
		{0, 2, ""},
		{2, 2, ""},
		{1, 2, `dataset "meshfeed" has no further batch: its loader ended before epoch 1`},
	} {
		l := lineLoader(t, d, c.epochs, 0)
		ds, err := NewDataset(l, d, xy)
		if err != nil {
			t.Fatal(err)
		}
		loop := train.NewLoop(lineTrainer(d))
		_, err = loop.RunEpochs(ds, c.run)
		if c.err == "" && (err != nil || loop.LoopStep != 4*c.run) {
			t.Errorf("%+v: %d steps, %v", c, loop.LoopStep, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
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
