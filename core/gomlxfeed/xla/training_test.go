//go:build cgo && (linux || darwin)

package xla

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// TestRealTraining fits a line with the trainer. The garbage collector frees the
// trainer's own buffers.
func TestRealTraining(t *testing.T) {
	for _, spec := range realPlugins(t) {
		t.Run(filepath.Base(spec), func(t *testing.T) { testTraining(t, spec) })
	}
}

func testTraining(t *testing.T, spec string) {
	d := opened(t, spec)
	r := rand.New(rand.NewPCG(7, 7))
	x, y := make([]float32, 2*256), make([]float32, 256)
	for i := range y {
		x[2*i], x[2*i+1] = r.Float32(), r.Float32()
		y[i] = 3*x[2*i] - 2*x[2*i+1] + 0.5
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", x, 2), arrowio.Slice("y", y, 1))
	if err != nil {
		t.Fatal(err)
	}
	lay, err := layout.New(&layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: d.Num()}}},
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{2}, Type: dtype.Float32, Spec: sharding.P("data")},
			{Name: "y", RowShape: []int{1}, Type: dtype.Float32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{64 / d.Num() * d.Num()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Epochs: -1})
	if err != nil {
		t.Fatal(err)
	}
	store := model.NewStore()
	trainer := train.NewTrainer(d.Backend(), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(s.In("dense"), x, true, 1)
	}, loss.MeanSquaredError, optimizer.Adam().LearningRate(0.1).Done(), nil, nil)
	metrics, err := train.NewLoop(trainer).RunSteps(dataset(t, l, d), 400)
	if err != nil {
		t.Fatal(err)
	}
	if off := metrics[0].Value().(float32); !(off < 0.01) {
		t.Errorf("the loss is %g after 400 steps", off)
	}
	for _, m := range metrics {
		_ = m.FinalizeAll()
	}
	store.Finalize()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	closed(t, d)
}

func dataset(t *testing.T, l *loader.Loader, d *gomlxfeed.Devices) train.Dataset {
	t.Helper()
	o := gomlxfeed.DatasetOptions{Inputs: []string{"x"}, Labels: []string{"y"}}
	if d.Num() == 1 {
		ds, err := gomlxfeed.NewDataset(l, d, o)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds, err := gomlxfeed.NewDistributedDataset(l, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// testGrowth places 10,000 batches of 1.5 MiB and checks that memory does not grow.
func testGrowth(t *testing.T, spec string) {
	d := opened(t, spec)
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: d.Num()}}},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{32, 32, 3}, Type: dtype.Float32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{128 / d.Num() * d.Num()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := d.Ring(lay)
	if err != nil {
		t.Fatal(err)
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", make([]float32, 1024*32*32*3), 32, 32, 3))
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Allocator: ring, Epochs: -1})
	if err != nil {
		t.Fatal(err)
	}
	const batches = 10_000
	placed, early := 0, 0
	for b, err := range gomlxfeed.Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if placed++; placed == batches/2 {
			early = resident(t)
		}
		if placed == batches {
			break
		}
	}
	t.Logf("resident memory: %d MiB half way, %d MiB at the end", early, resident(t))
	// 7,500 MiB were placed since; malloc may keep some for each thread
	if late := resident(t); late > early+75 {
		t.Errorf("resident memory grew from %d to %d MiB between batch %d and %d", early, late, batches/2, batches)
	}
	for _, err := range []error{l.Close(), ring.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	closed(t, d)
}

// resident returns the resident memory of this process in MiB, or 0 if the system
// does not report it.
func resident(t *testing.T) int {
	t.Helper()
	status, _ := os.ReadFile("/proc/self/status")
	_, after, found := strings.Cut(string(status), "VmRSS:")
	if !found {
		return 0
	}
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
