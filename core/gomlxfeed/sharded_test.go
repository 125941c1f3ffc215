package gomlxfeed

import (
	"bytes"
	"context"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// gridLayout shards batches of 16 × 8 over a mesh with a rotated list of devices.
func gridLayout(t *testing.T, rotate int, axes ...mesh.Axis) *layout.Layout {
	t.Helper()
	spec := layout.MeshSpec{Axes: axes}
	size := axes[0].Size * axes[1].Size
	for i := range size {
		spec.Devices = append(spec.Devices, mesh.Device{ID: (i + rotate) % size})
	}
	lay, err := layout.New(&layout.Document{
		Mesh:   spec,
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{8}, Type: dtype.Float32, Spec: sharding.P("data", "model")}},
		Batch:  &layout.BatchSpec{Size: []int{16}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lay
}

// twoOutputs returns one number per element and one per row. It scales the source's
// values, which are below 2^23, to [0, 1), because tanh saturates at larger values.
func twoOutputs(x *graph.Node) (*graph.Node, *graph.Node) {
	small := graph.MulScalar(x, 1.0/(1<<23))
	return graph.Tanh(small), graph.ReduceSum(small, 1)
}

// TestAutoSharding computes on sharded batches, for eight orders of the mesh's devices. The
// results must equal the results on one device, and every shard must be on its assigned
// device.
func TestAutoSharding(t *testing.T) {
	want := unsharded(t)
	for rotate := range 8 {
		d := opened(t, "virtual:8")
		got := sharded(t, d, gridLayout(t, rotate, mesh.Axis{Name: "data", Size: 4}, mesh.Axis{Name: "model", Size: 2}))
		if len(got) != len(want) {
			t.Fatalf("%d steps, want %d", len(got), len(want))
		}
		for step := range want {
			for i := range want[step] {
				if !bytes.Equal(got[step][i], want[step][i]) {
					t.Errorf("rotated by %d, step %d: result %d differs from the unsharded run", rotate, step, i)
				}
			}
		}
		closeAll(t, d)
	}
}

func gridLoader(t *testing.T, d *Devices, lay *layout.Layout) *loader.Loader {
	t.Helper()
	l, err := loader.New(synthetic.New(40, source.Field{Name: "x", Type: dtype.Float32, Shape: []int{8}}), loader.Options{Layout: lay, Shuffle: true, Seed: 5, Allocator: ringOf(t, d, lay)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// unsharded returns the results of every step on one device.
func unsharded(t *testing.T) (steps [][2][]byte) {
	d := opened(t, "go")
	e, err := graph.NewExec(d.Backend(), twoOutputs)
	if err != nil {
		t.Fatal(err)
	}
	l := gridLoader(t, d, gridLayout(t, 0, mesh.Axis{Name: "data", Size: 1}, mesh.Axis{Name: "model", Size: 1}))
	for b, err := range Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Call(b.Tensor("x").Shards()[0])
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, [2][]byte{bytesOf(t, out[0]), bytesOf(t, out[1])})
		b.Release()
	}
	_ = l.Close()
	e.Finalize()
	closeAll(t, d)
	return steps
}

// sharded returns the results of every step on the devices of a mesh.
func sharded(t *testing.T, d *Devices, lay *layout.Layout) (steps [][2][]byte) {
	e, err := graph.NewExec(d.Backend(), twoOutputs)
	if err != nil {
		t.Fatal(err)
	}
	logical, assignment, err := Mesh(lay.Mesh(), d)
	if err != nil {
		t.Fatal(err)
	}
	grid, _ := ShardingSpec(logical, sharding.P("data", "model"), 2)
	rows, _ := ShardingSpec(logical, sharding.P("data"), 1)
	e.AutoSharding(logical).WithDeviceAssignment(assignment).WithInputShardingSpecs(grid).WithOutputShardingSpecs(grid, rows)
	l := gridLoader(t, d, lay)
	for b, err := range Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.DistributedCall(b.Tensor("x"))
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, [2][]byte{
			merged(t, lay, assignment, out[0].Shards(), []int{16, 8}, sharding.P("data", "model")),
			merged(t, lay, assignment, out[1].Shards(), []int{16}, sharding.P("data")),
		})
		b.Release()
	}
	_ = l.Close()
	e.Finalize()
	return steps
}

// merged assembles an array from its shards, and checks the device of each. As in
// JAX, the sharding says which part of the array the device at a mesh position holds.
func merged(t *testing.T, lay *layout.Layout, assignment []compute.DeviceNum, shards []*tensors.Tensor, shape []int, spec sharding.PartitionSpec) []byte {
	t.Helper()
	s, err := sharding.New(lay.Mesh(), spec)
	if err != nil {
		t.Fatal(err)
	}
	width := 4
	if len(shape) == 2 {
		width *= shape[1]
	}
	whole := make([]byte, shape[0]*width)
	for i, shard := range shards {
		if on, err := shard.Device(); err != nil || on != assignment[i] {
			t.Errorf("shard %d is on device %d (%v), not %d", i, on, err, assignment[i])
		}
		index, from := s.IndexAt(shape, i), bytesOf(t, shard)
		columns := [2]int{0, width}
		if len(shape) == 2 {
			columns = [2]int{4 * index[1][0], 4 * index[1][1]}
		}
		for row := index[0][0]; row < index[0][1]; row++ {
			n := copy(whole[row*width+columns[0]:row*width+columns[1]], from)
			from = from[n:]
		}
	}
	return whole
}

func bytesOf(t *testing.T, x *tensors.Tensor) (copied []byte) {
	t.Helper()
	if err := x.ConstBytes(func(b []byte) { copied = bytes.Clone(b) }); err != nil {
		t.Fatal(err)
	}
	return copied
}
