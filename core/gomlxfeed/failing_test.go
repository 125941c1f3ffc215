package gomlxfeed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// For every k, the backend fails or panics at its k-th call. After a failure the
// step is an error, no buffer stays live, and the next loop delivers that step.
// After a panic the backend is not used further.
func TestBackendFails(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		for _, panics := range []bool{false, true} {
			bothKinds(t, func(t *testing.T, _ *countingBackend, d *Devices) {
				for k := 1; k <= 3*squareShards; k++ {
					backendFailsAt(t, k, d.Shared(), panics, foreign)
				}
			})
		}
	}
}

func backendFailsAt(t *testing.T, k int, shared, panics, foreign bool) {
	counts, d := newCountingBackend(t, 4, shared)
	counts.failAt, counts.panics = k, panics
	into := d
	if foreign {
		into = nil
	}
	l := squareLoader(t, into, loader.Options{Epochs: 1, Prefetch: k % 4})
	var steps []int64
	var held []*Batch
	var failure error
	for b, err := range Placed(context.Background(), l, d) {
		if failure = err; err != nil {
			break
		}
		held = append(held, b)
		steps = append(steps, b.Step().Index)
	}
	if failure == nil || !strings.Contains(failure.Error(), "the backend ") {
		t.Fatalf("k=%d: %v", k, failure)
	}
	if at := l.Step(); at != int64(len(steps)) {
		t.Errorf("k=%d: the loader is at step %d after %v", k, at, steps)
	}
	for b, err := range Placed(context.Background(), l, d) {
		if panics != (err != nil) {
			t.Fatalf("k=%d: afterwards %v", k, err)
		}
		if err == nil {
			held = append(held, b)
			steps = append(steps, b.Step().Index)
		}
	}
	if want := "[0 1 2 3 4 5]"; !panics && fmt.Sprint(steps) != want {
		t.Errorf("k=%d: steps %v", k, steps)
	}
	if panics {
		for _, b := range held {
			b.Release()
		}
	} else {
		compareAll(t, l, 0, held)
	}
	_ = l.Close()
	_ = d.Close()
	if n, _ := d.Live(); n != 0 {
		t.Errorf("k=%d: %d live", k, n)
	}
	if n := counts.alive(); n != 0 && !panics { // the buffers of a broken backend are only forgotten
		t.Errorf("k=%d: %d live in the backend", k, n)
	}
}

// A broken backend delivers no batch, even if idle memory exists, and is not asked
// to free its buffers.
func TestBrokenBackend(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
		held := next(t, l, d)
		next(t, l, d).Release()
		counts.failAt, counts.panics = counts.calls+1, true
		if _, err := d.put(0, shapeOf(dtype.Int32, nil), make([]byte, 4)); err == nil {
			t.Fatal("the backend did not fail")
		}
		alive := counts.alive()
		for _, err := range Placed(context.Background(), l, d) {
			wantText(t, err, status.InvalidState, "loader: step 2 of epoch 0: cannot place a batch: the backend panicked earlier (the backend panics); close these devices and open them again")
		}
		if l.Step() != 2 {
			t.Errorf("the loader is at step %d", l.Step())
		}
		held.Release()
		_ = l.Close()
		_ = d.Close()
		if n, _ := d.Live(); n != 0 || counts.alive() != alive {
			t.Errorf("%d buffers are counted; the backend has %d, and had %d", n, counts.alive(), alive)
		}
	})
}

// A step that is canceled while it is placed is placed again.
func TestCancelledPlacing(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		l := squareLoader(t, nil, loader.Options{Epochs: 1})
		p, err := newPlacer(l, d)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = p.place(ctx, b)
		wantText(t, err, status.Cancelled, "gomlxfeed: a batch was not placed: context canceled; ask again: nothing is lost")
		if at := l.Step(); at != 0 {
			t.Errorf("the loader is at step %d", at)
		}
		p.close()
		counts.nothingLives(t, d)
	})
}

func TestRingErrors(t *testing.T) {
	_, d := newCountingBackend(t, 4, true)
	ring := ringOf(t, d, squareLayout(t))
	right, err := loader.New(squareSource(24), loader.Options{Layout: squareLayout(t), Allocator: ring})
	if err != nil {
		t.Fatal(err)
	}
	next(t, right, d).Release()
	_ = right.Close()
	other, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}}},
		Arrays: []layout.ArraySpec{{Name: "y", Type: dtype.Int32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(squareSource(24), loader.Options{Layout: other, Allocator: ring})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Next(context.Background())
	wantText(t, err, status.InvalidArgument, "loader: step 0 of epoch 0: the ring holds 6 blocks of process 0 of its layout, but a loader of another layout or process asks for 4; create the ring with the loader's layout")

	_, err = ring.Place(context.Background(), batch.Step{}, func(int) []byte { return make([]byte, 8) })
	wantText(t, err, status.InvalidArgument, "gomlxfeed: block 0 of the batch has 8 bytes, but float32[2,3] takes 24; a batch that was released or taken has no bytes")

	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	_ = ring.Close() // does nothing
	if n := len(d.rings); n != 0 {
		t.Errorf("%d rings are registered with the devices", n)
	}
	_, err = ring.Alloc(ring.plan.blocks)
	wantText(t, err, status.InvalidState, "gomlxfeed: the ring is closed; open the devices again, or create another ring")

	_, err = d.Ring(nil)
	wantText(t, err, status.InvalidArgument, "gomlxfeed: there is no layout")
	_ = d.Close()
	_, err = d.Ring(squareLayout(t))
	wantText(t, err, status.InvalidState, "gomlxfeed: cannot allocate: the devices are closed")
}

// Sizes too large to allocate, which would end the process, are rejected.
func TestRingTooLarge(t *testing.T) {
	_, d := newCountingBackend(t, 8, true)
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 8}}},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{1 << 20}, Type: dtype.Float32}},
		Batch:  &layout.BatchSpec{Size: []int{1 << 12}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Ring(lay)
	wantText(t, err, status.ResourceExhausted, "gomlxfeed: one batch takes 137438953472 bytes on the 8 devices of the mesh, but may take 68719476736 of shared memory; use a smaller batch, or partition the replicated arrays")
}
