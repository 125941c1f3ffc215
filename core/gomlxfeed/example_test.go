package gomlxfeed_test

import (
	"context"
	"fmt"
	"math/rand/v2"

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
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// This example loads 16 records of 8 numbers, in batches of 8 over a 4 × 2 mesh.
func exampleData() (source.Source, *layout.Layout) {
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{8}, Type: dtype.Float32, Spec: sharding.P("data", "model")}},
		Batch:  &layout.BatchSpec{Size: []int{8}},
	})
	if err != nil {
		panic(err)
	}
	return synthetic.New(16, source.Field{Name: "x", Type: dtype.Float32, Shape: []int{8}}), lay
}

// The example ignores errors; a program must not.
func ExamplePlaced() {
	ctx := context.Background()
	src, lay := exampleData()
	devices, _ := gomlxfeed.Open(ctx, "virtual:8")
	defer devices.Close()
	ring, _ := devices.Ring(lay)
	defer ring.Close() // after the loader
	l, _ := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Allocator: ring})
	defer l.Close()
	for b, err := range gomlxfeed.Placed(ctx, l, devices) {
		if err != nil {
			fmt.Println(err)
			return
		}
		x := b.Tensor("x") // a *dtensor.Tensor, for an Exec
		fmt.Println("step", b.Step().Index, x.Shape(), "in shards of", x.ShardShape())
		b.Release()
	}
	// Output:
	// step 0 (Float32)[8, 8] in shards of (Float32)[2, 4]
	// step 1 (Float32)[8, 8] in shards of (Float32)[2, 4]
}

// A sharded computation takes the mesh, the device assignment and the specs.
func ExampleMesh() {
	ctx := context.Background()
	src, lay := exampleData()
	devices, err := gomlxfeed.Open(ctx, "virtual:8")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer devices.Close()
	l, err := loader.New(src, loader.Options{Layout: lay})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()

	logical, assignment, err := gomlxfeed.Mesh(lay.Mesh(), devices)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, _ := gomlxfeed.ShardingSpec(logical, sharding.P("data"), 1)
	sums, err := graph.NewExec(devices.Backend(), func(x *graph.Node) *graph.Node { return graph.ReduceSum(x, 1) })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sums.Finalize()
	sums.AutoSharding(logical).WithDeviceAssignment(assignment).WithOutputShardingSpecs(rows)
	for b, err := range gomlxfeed.Placed(ctx, l, devices) {
		if err != nil {
			fmt.Println(err)
			return
		}
		x := b.Tensor("x")
		out, err := sums.WithInputShardingSpecs(x.ShardingSpec()).DistributedCall(x)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out[0].Shape(), "in shards of", out[0].ShardShape())
		_ = out[0].Finalize()
		b.Release()
	}
	// Output:
	// (Float32)[8] in shards of (Float32)[2]
	// (Float32)[8] in shards of (Float32)[2]
}

// exampleLine returns data for a linear model: y = 3a - 2b + 1/2.
func exampleLine() (source.Source, *layout.Layout) {
	r := rand.New(rand.NewPCG(7, 7))
	x, y := make([]float32, 2*256), make([]float32, 256)
	for i := range y {
		x[2*i], x[2*i+1] = r.Float32(), r.Float32()
		y[i] = 3*x[2*i] - 2*x[2*i+1] + 0.5
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", x, 2), arrowio.Slice("y", y, 1))
	if err != nil {
		panic(err)
	}
	lay, err := layout.New(&layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 8}}},
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{2}, Type: dtype.Float32, Spec: sharding.P("data")},
			{Name: "y", RowShape: []int{1}, Type: dtype.Float32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{64}},
	})
	if err != nil {
		panic(err)
	}
	return src, lay
}

// The trainer takes a dataset and splits its batches over the mesh.
func ExampleNewDistributedDataset() {
	ctx := context.Background()
	src, lay := exampleLine()
	devices, err := gomlxfeed.Open(ctx, "virtual:8")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer devices.Close()
	ring, err := devices.Ring(lay)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close() // after the loader
	// RunSteps needs batches without end.
	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Epochs: -1, Allocator: ring})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	ds, err := gomlxfeed.NewDistributedDataset(l, devices, gomlxfeed.DatasetOptions{Inputs: []string{"x"}, Labels: []string{"y"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	trainer := train.NewTrainer(devices.Backend(), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(s.In("dense"), x, true, 1)
	}, loss.MeanSquaredError, optimizer.Adam().LearningRate(0.1).Done(), nil, nil)
	metrics, err := train.NewLoop(trainer).RunSteps(ds, 300)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("converged:", metrics[0].Value().(float32) < 0.01)
	fmt.Println("steps per epoch:", l.StepsPerEpoch(), "now in epoch", l.Epoch())
	// Output:
	// converged: true
	// steps per epoch: 4 now in epoch 75
}
