//go:build cgo && (linux || darwin)

package xla

import (
	"context"
	"math"
	"strconv"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

const depth, width = 64, 32 // sizes of the program's matrices

// program is a layer of a network and its sums over the batch, across devices.
func program(x, w *graph.Node) (*graph.Node, *graph.Node) {
	y := graph.Tanh(graph.Dot(x, w).Product())
	return y, graph.ReduceSum(y, 0)
}

// testDeviceOrders runs a sharded program with rotated device orders and compares
// the results with the pure-Go devices.
func testDeviceOrders(t *testing.T, spec string) {
	d := opened(t, spec)
	if d.Num() < 2 || d.Num()%2 > 0 {
		closed(t, d)
		t.Skipf("%s has %d devices: sharding needs an even number", d.Name(), d.Num())
	}
	reference := opened(t, "virtual:"+strconv.Itoa(d.Num()))
	for by := range d.Num() {
		got, want := sharded(t, d, by), sharded(t, reference, by)
		for i := range want {
			if off := furthest(got[i], want[i]); !(off < 1e-5) {
				t.Errorf("rotated by %d: output %d differs by %g", by, i, off)
			}
		}
	}
	closed(t, reference)
	closed(t, d)
}

func furthest(a, b []float32) (most float64) {
	if len(a) != len(b) || len(a) == 0 {
		return math.NaN()
	}
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

// sharded runs the program on one batch. Rows are split over axis data, columns of
// w over axis model, and the device order is rotated.
func sharded(t *testing.T, d *gomlxfeed.Devices, by int) [][]float32 {
	t.Helper()
	n := d.Num()
	doc := &layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: n / 2}, {Name: "model", Size: 2}}},
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{depth}, Type: dtype.Float32, Spec: sharding.P("data")},
			{Name: "w", RowShape: []int{width}, Type: dtype.Float32, Spec: sharding.P(nil, "model")},
		},
		Batch: &layout.BatchSpec{Size: []int{depth}},
	}
	for i := range n {
		doc.Mesh.Devices = append(doc.Mesh.Devices, mesh.Device{ID: (i + by) % n})
	}
	lay, err := layout.New(doc)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(waves(t), loader.Options{Layout: lay, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var values [][]float32
	for b, err := range gomlxfeed.Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		values = computed(t, d, lay, b)
		b.Release()
	}
	return values
}

func waves(t *testing.T) source.Source {
	t.Helper()
	x, w := make([]float32, depth*depth), make([]float32, depth*width)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)*0.37)) / 8
	}
	for i := range w {
		w[i] = float32(math.Cos(float64(i)*0.73)) / 8
	}
	src, err := arrowio.FromSlices(arrowio.Slice("x", x, depth), arrowio.Slice("w", w, width))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// computed runs the program, checks the devices of the output shards, and returns
// the whole outputs.
func computed(t *testing.T, d *gomlxfeed.Devices, lay *layout.Layout, b *gomlxfeed.Batch) (values [][]float32) {
	t.Helper()
	logical, assignment, err := gomlxfeed.Mesh(lay.Mesh(), d)
	if err != nil {
		t.Fatal(err)
	}
	y, err := gomlxfeed.ShardingSpec(logical, sharding.P("data", "model"), 2)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := gomlxfeed.ShardingSpec(logical, sharding.P("model"), 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := graph.NewExec(d.Backend(), program)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Finalize()
	x, w := b.Tensor("x"), b.Tensor("w")
	e.AutoSharding(logical).WithDeviceAssignment(assignment).WithOutputShardingSpecs(y, sums).
		WithInputShardingSpecs([]*distributed.ShardingSpec{x.ShardingSpec(), w.ShardingSpec()}...)
	out, err := e.DistributedCall(x, w)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		values = append(values, whole(t, o, assignment))
	}
	return values
}

func whole(t *testing.T, o *dtensor.Tensor, assignment []compute.DeviceNum) []float32 {
	t.Helper()
	for i, shard := range o.Shards() {
		if on, err := shard.Device(); err != nil || on != assignment[i] {
			t.Errorf("output shard %d is on device %d, not %d (%v)", i, on, assignment[i], err)
		}
	}
	merged, err := o.Merge()
	if err != nil {
		t.Fatal(err)
	}
	values, err := tensors.CopyFlatData[float32](merged)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{merged.FinalizeAll(), o.Finalize()} {
		if err != nil {
			t.Error(err)
		}
	}
	return values
}
