package gomlxfeed

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// While a step is computed, as many further steps are placed as the prefetch
// allows, and no more.
func TestPlacedAhead(t *testing.T) {
	for _, prefetch := range []int{1, 3} {
		counts, d := newCountingBackend(t, 4, false)
		l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: prefetch})
		b := next(t, l, d)
		for late := time.Now().Add(20 * time.Second); l.Stats().Queued < int64(prefetch); runtime.Gosched() {
			if time.Now().After(late) {
				t.Fatal("the next steps are not placed")
			}
		}
		if n := counts.alive(); n != (1+prefetch)*squareShards {
			t.Errorf("%d buffers are on the devices with one step computed and %d placed ahead", n, prefetch)
		}
		b.Release()
	}
}

// A loop that ends early has delivered the batches that it yielded and no others.
func TestPlacedStopsInTheMiddle(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		idle := 0 // buffers in the ring of the first loader
		for _, into := range []*Devices{d, nil} {
			l := squareLoader(t, into, loader.Options{Epochs: 2})
			var steps []int64
			for round := range 12 {
				for b, err := range Placed(context.Background(), l, d) {
					if err != nil {
						t.Fatal(err)
					}
					steps = append(steps, b.Step().Epoch*6+b.Step().Index)
					compare(t, l, 0, b)
					b.Release()
					if len(steps) > round*3/2 {
						break
					}
				}
				if at := l.State(); at.Epoch*6+at.Position/4 != int64(len(steps)) {
					t.Fatalf("after %d steps the loader is at %v", len(steps), at)
				}
			}
			for i, s := range steps {
				if s != int64(i) {
					t.Fatalf("steps %v", steps)
				}
			}
			if len(steps) != 12 {
				t.Errorf("%d steps", len(steps))
			}
			_ = l.Close()
			if into == nil { // the rings of the loops are closed
				if n := len(d.rings); n != 1 {
					t.Errorf("%d rings are registered with the devices", n)
				}
				if n := counts.alive(); n != idle {
					t.Errorf("%d buffers live, %d before", n, idle)
				}
			}
			idle = counts.alive()
		}
		_ = d.Close()
		counts.nothingLives(t, d)
	})
}

// When its context ends, a loop yields an error, and the next loop continues.
func TestPlacedIsCancelled(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: 1, Prefetch: -1})
		ctx, cancel := context.WithCancel(context.Background())
		var steps []int64
		for b, err := range Placed(ctx, l, d) {
			if err != nil {
				wantText(t, err, status.Cancelled, "loader: the wait for a batch was cancelled: context canceled")
				continue // the loop is over
			}
			steps = append(steps, b.Step().Index)
			b.Release()
			if len(steps) == 2 {
				cancel()
			}
		}
		for b, err := range Placed(context.Background(), l, d) {
			if err != nil {
				t.Fatal(err)
			}
			if b.Step().Index != int64(len(steps)) {
				t.Errorf("step %d follows %v", b.Step().Index, steps)
			}
			steps = append(steps, b.Step().Index)
			b.Release()
		}
		if len(steps) != 6 {
			t.Errorf("steps %v", steps)
		}
		cancel()
		_ = l.Close()
		_ = d.Close()
		counts.nothingLives(t, d)
	})
}

func firstError(l *loader.Loader, d *Devices) error {
	for b, err := range Placed(context.Background(), l, d) {
		if err != nil {
			return err
		}
		b.Release()
	}
	return nil
}

func TestPlacedErrors(t *testing.T) {
	_, d := newCountingBackend(t, 4, true)
	l := squareLoader(t, d, loader.Options{Epochs: -1})
	next(t, l, d).Release()
	wantText(t, firstError(nil, d), status.InvalidArgument, "gomlxfeed: a loader and devices are needed")
	wantText(t, firstError(l, nil), status.InvalidArgument, "gomlxfeed: a loader and devices are needed")

	of := squareLoader(t, nil, loader.Options{Process: 1, Processes: 2, Epochs: 1})
	wantText(t, firstError(of, d), status.InvalidArgument, "gomlxfeed: the loader is of process 1, but the devices of the mesh are of process 0; set loader.Options.Process to 0")

	_, few := newCountingBackend(t, 2, true)
	wantText(t, firstError(l, few), status.OutOfRange, "gomlxfeed: position 0 of Mesh('data': 2, 'model': 2) is device 2, but counting has devices 0 to 1; open at least 4 devices, or use a smaller mesh")

	_ = l.Close()
	wantText(t, firstError(l, d), status.InvalidState, "loader: the loader is closed")
	_ = d.Close()
	wantText(t, firstError(l, d), status.InvalidState, "gomlxfeed: cannot allocate: the devices are closed")
}

// Closing the devices ends a running loader that gathers into them.
func TestDevicesAreClosed(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: 1, Prefetch: -1})
		b := next(t, l, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := l.Next(context.Background())
		wantText(t, err, status.InvalidState, "loader: step 1 of epoch 0: the ring is closed; open the devices again, or create another ring")
		if n, _ := d.Live(); n != squareShards {
			t.Errorf("%d buffers are live", n)
		}
		b.Release()
		counts.nothingLives(t, d)
	})
}

func TestBatchErrors(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: 1})
		b := next(t, l, d)
		if b.Tensor("z") != nil {
			t.Error("there is a tensor z")
		}
		shard := make([]byte, 24)
		wantText(t, b.Read("z", 0, shard), status.NotFound, `gomlxfeed: the batch has no array "z"; it has ["x" "y"]`)
		wantText(t, b.Read("x", 4, shard), status.OutOfRange, "gomlxfeed: there is no position 4 in a mesh of 4 devices")
		wantText(t, b.Read("x", -1, shard), status.OutOfRange, "gomlxfeed: there is no position -1 in a mesh of 4 devices")
		wantText(t, b.Read("x", 0, shard[1:]), status.InvalidArgument, "gomlxfeed: cannot read a tensor of 24 bytes into 23")
		if _, err := b.Bytes("x", 0); !d.Shared() {
			wantText(t, err, status.Unsupported, "gomlxfeed: the memory of counting is not shared; read the shard, which copies it")
		} else if err != nil {
			t.Error(err)
		}
		b.Release()
		wantText(t, b.Read("x", 0, shard), status.InvalidState, "gomlxfeed: this batch was released or taken before; a batch has one owner: release it or take its tensors, once")
		_, err := b.Bytes("x", 0)
		wantText(t, err, status.InvalidState, "gomlxfeed: this batch was released or taken before; a batch has one owner: release it or take its tensors, once")
	})
}

// A ring with equal blocks is not enough: names and specs must match the loader's layout.
func TestRingOfAnotherLayout(t *testing.T) {
	_, d := newCountingBackend(t, 2, true)
	layoutOf := func(name string, spec sharding.PartitionSpec) *layout.Layout {
		lay, err := layout.New(&layout.Document{
			Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}, {Name: "one", Size: 1}}},
			Arrays: []layout.ArraySpec{{Name: name, Field: "y", Type: dtype.Int32, Spec: spec}},
			Batch:  &layout.BatchSpec{Size: []int{4}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return lay
	}
	rows := sharding.P("data")
	for _, other := range []*layout.Layout{layoutOf("z", rows), layoutOf("y", sharding.P([]string{"data", "one"}))} {
		l, err := loader.New(squareSource(24), loader.Options{Layout: layoutOf("y", rows), Allocator: ringOf(t, d, other)})
		if err != nil {
			t.Fatal(err)
		}
		b := next(t, l, d)
		y := b.Tensor("y")
		if y == nil || len(y.ShardingSpec().Axes[0]) != 1 {
			t.Errorf("got arrays %q, the first %v", b.Names(), b.Tensors()[0].ShardingSpec())
		}
		b.Release()
		_ = l.Close()
	}
}
