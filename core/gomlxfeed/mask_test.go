package gomlxfeed

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// maskRecords leaves 5 rows for the last batch of 8. With shards of 2 rows, one
// shard is half padding and one is all padding.
const maskRecords, maskBatch = 21, 8

// paddedLoader delivers record numbers, counted from 1, as y, and pads the last
// batch.
func paddedLoader(t *testing.T, d *Devices, devices int, ring bool) *loader.Loader {
	t.Helper()
	y := make([]int32, maskRecords)
	for i := range y {
		y[i] = int32(i + 1)
	}
	src, err := arrowio.FromSlices(arrowio.Slice("y", y))
	if err != nil {
		t.Fatal(err)
	}
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: devices}}},
		Arrays: []layout.ArraySpec{{Name: "y", Type: dtype.Int32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{maskBatch}, Remainder: layout.Pad},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := loader.Options{Layout: lay}
	if ring {
		o.Allocator = ringOf(t, d, lay)
	}
	l, err := loader.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// flat reads a shard and frees it.
func flat[T any](t *testing.T, shards []*tensors.Tensor) (all []T) {
	t.Helper()
	for _, shard := range shards {
		if err := shard.ConstFlatData(func(data any) { all = append(all, data.([]T)...) }); err != nil {
			t.Fatal(err)
		}
		if err := shard.FinalizeAll(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// The trainer's mask is true exactly for rows that are records, and padding rows
// are zero. This also holds in memory that a full batch used before.
func TestMaskOfThePaddedBatch(t *testing.T) {
	o := DatasetOptions{Inputs: []string{"y", "valid"}}
	check := func(step int, y []int32, valid []bool) {
		t.Helper()
		var wantY []int32
		var wantValid []bool
		for row := range maskBatch {
			record := step%3*maskBatch + row
			wantValid = append(wantValid, record < maskRecords)
			wantY = append(wantY, 0)
			if record < maskRecords {
				wantY[row] = int32(record + 1)
			}
		}
		if !slices.Equal(y, wantY) || !slices.Equal(valid, wantValid) {
			t.Errorf("step %d: got %v %v, want %v %v", step, y, valid, wantY, wantValid)
		}
	}
	for _, ring := range []bool{true, false} {
		bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
			one, err := NewDataset(paddedLoader(t, d, 1, ring), d, o)
			if err != nil {
				t.Fatal(err)
			}
			steps := 0
			four := distributedOf(t, paddedLoader(t, d, 4, ring), d, o)
			for range 2 {
				for b, err := range one.Iter() {
					if err != nil {
						t.Fatal(err)
					}
					check(steps, flat[int32](t, b.Inputs[:1]), flat[bool](t, b.Inputs[1:]))
					steps++
				}
				for b, err := range four.DistributedIter() {
					if err != nil {
						t.Fatal(err)
					}
					check(steps, flat[int32](t, b.Inputs[0].Shards()), flat[bool](t, b.Inputs[1].Shards()))
					steps++
				}
			}
			if steps != 12 {
				t.Errorf("%d steps, want 2 epochs of 3 on one device and on four", steps)
			}
		})
	}
}
