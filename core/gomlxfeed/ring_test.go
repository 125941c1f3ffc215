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
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// squareLayout has an array that is split and one that is copied to two of four
// devices, in batches of 4.
func squareLayout(t testing.TB, ids ...int) *layout.Layout {
	t.Helper()
	if ids == nil {
		ids = []int{2, 0, 3, 1}
	}
	spec := layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 2}, {Name: "model", Size: 2}}}
	for _, id := range ids {
		spec.Devices = append(spec.Devices, mesh.Device{ID: id})
	}
	lay, err := layout.New(&layout.Document{
		Mesh: spec,
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{6}, Type: dtype.Float32, Spec: sharding.P("data", "model")},
			{Name: "y", Type: dtype.Int32, Spec: sharding.P("data")},
		},
		Batch: &layout.BatchSpec{Size: []int{4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lay
}

func squareSource(records int64) *synthetic.Source {
	return synthetic.New(records, source.Field{Name: "x", Type: dtype.Float32, Shape: []int{6}}, source.Field{Name: "y", Type: dtype.Int32})
}

const squareShards = 8 // of a batch of squareLayout

// squareLoader loads 6 batches per epoch; into a ring if there are devices.
func squareLoader(t testing.TB, d *Devices, o loader.Options) *loader.Loader {
	t.Helper()
	o.Layout = squareLayout(t)
	if d != nil {
		o.Allocator = ringOf(t, d, o.Layout)
	}
	l, err := loader.New(squareSource(24), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func ringOf(t testing.TB, d *Devices, lay *layout.Layout) *Ring {
	t.Helper()
	ring, err := d.Ring(lay)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func wantText(t *testing.T, err error, code status.Code, text string) {
	t.Helper()
	if err == nil || status.CodeOf(err) != code || err.Error() != text {
		t.Errorf("got  %v: %v\nwant %v: %s", status.CodeOf(err), err, code, text)
	}
}

// bothKinds runs a test with shared memory and without.
func bothKinds(t *testing.T, test func(t *testing.T, w *witness, d *Devices)) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) {
			w, d := newWitness(t, 4, shared)
			test(t, w, d)
		})
	}
}

func next(t *testing.T, l *loader.Loader, d *Devices) *Batch {
	t.Helper()
	for b, err := range Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Fatal("there is no batch")
	return nil
}

// Shared memory goes round, and what the gather wrote is what a device has.
func TestRingIsReused(t *testing.T) {
	w, d := newWitness(t, 4, true)
	l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
	for range 100 {
		b := next(t, l, d)
		compare(t, l, 0, b)
		b.Release()
		b.Release() // does nothing
	}
	if w.calls != squareShards {
		t.Errorf("100 batches took %d buffers, want %d", w.calls, squareShards)
	}
	if w.copied != 0 {
		t.Errorf("%d bytes were copied in", w.copied)
	}
}

// A batch that is not released keeps its value, and nothing waits for it.
func TestHeldBatchesStay(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: 5})
		var held []*Batch
		for b, err := range Placed(context.Background(), l, d) {
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, b)
		}
		if len(held) != 30 {
			t.Fatalf("%d batches", len(held))
		}
		if n, _ := l.Stats().LiveBatches, l.Stats().LiveBytes; n != 30 {
			t.Errorf("%d batches are live", n)
		}
		ring := held[0].memory.ring
		compareAll(t, l, 0, held)
		if n, bytes := l.Stats().LiveBatches, l.Stats().LiveBytes; n != 0 || bytes != 0 {
			t.Errorf("%d batches of %d bytes are live", n, bytes)
		}
		if staging := l.Layout().Prefetch() + 3; !d.Shared() {
			if n, _ := ring.staging.Live(); n != 0 || ring.staging.Idle() != staging {
				t.Errorf("of the host memory %d pieces live and %d wait, want %d", n, ring.staging.Idle(), staging)
			}
		}
		idle := 0 // shared memory waits for reuse, within bounds
		if d.Shared() {
			idle = (l.Layout().Prefetch() + 3) * squareShards
		}
		if n := w.alive(); n != idle {
			t.Errorf("%d buffers wait, want %d", n, idle)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		w.nothingLives(t, d)
	})
}

// Memory that a hold keeps is not written to, also beyond the batch.
func TestHold(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
		b := next(t, l, d)
		slot := b.memory.slot
		shard := slot.shards[0][3]
		before, after := make([]byte, 24), make([]byte, 24)
		if err := d.read(shard, before); err != nil {
			t.Fatal(err)
		}
		first, err := b.Hold()
		if err != nil {
			t.Fatal(err)
		}
		second, _ := b.Hold()
		_, err = b.Take()
		wantText(t, err, status.InvalidState, "gomlxfeed: the batch is held, so its tensors cannot be taken; end what Hold began first")
		b.Release()
		for range 3 {
			next(t, l, d).Release()
		}
		first()
		first() // does nothing
		next(t, l, d).Release()
		if err := d.read(shard, after); err != nil || string(before) != string(after) {
			t.Errorf("held memory changed: %v", err)
		}
		second()
		if d.Shared() {
			if b := next(t, l, d); b.memory.slot != slot {
				t.Error("the slot does not serve again")
			}
		} else if err := d.read(shard, after); err == nil {
			t.Error("the shard was not freed with the last hold")
		}
		_, err = b.Hold()
		wantText(t, err, status.InvalidState, "gomlxfeed: this batch was released or taken before; a batch has one owner: release it or take its tensors, once")
	})
}

// What is taken is the caller's: it is in no count, no later batch writes to
// it, and finalizing it is all that is left to do.
func TestTake(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
		b := next(t, l, d)
		list, err := b.Take()
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		if n, bytes := d.Live(); n != 0 || bytes != 0 {
			t.Errorf("%d buffers of %d bytes are still counted", n, bytes)
		}
		_, err = b.Take()
		wantText(t, err, status.InvalidState, "gomlxfeed: this batch was released or taken before; a batch has one owner: release it or take its tensors, once")
		b.Release()
		if b.Tensors() != nil || b.Tensor("x") != nil {
			t.Error("a taken batch has tensors")
		}
		next(t, l, d).Release()
		for _, x := range list {
			if err := x.Finalize(); err != nil {
				t.Error(err)
			}
		}
		_ = l.Close()
		_ = d.Close()
		w.nothingLives(t, d)
	})
}

// Whoever finalizes what is not his breaks nothing but his own batch.
func TestFinalizedByOthers(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
		for i := range 10 {
			b := next(t, l, d)
			compare(t, l, 0, b)
			switch i % 3 {
			case 0:
				_ = b.Tensor("y").Finalize()
			case 1:
				_ = b.Tensor("x").Shards()[2].FinalizeAll()
			}
			b.Release()
		}
		_ = l.Close()
		_ = d.Close()
		w.nothingLives(t, d)
	})
}

// A backend that fails at its k-th call gives an error in the place of a step,
// leaves nothing live, and the next loop goes on with that very step. One that
// panics is not used further. Both for every k.
func TestBackendFails(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		for _, panics := range []bool{false, true} {
			bothKinds(t, func(t *testing.T, _ *witness, d *Devices) {
				for k := 1; k <= 3*squareShards; k++ {
					backendFailsAt(t, k, d.Shared(), panics, foreign)
				}
			})
		}
	}
}

func backendFailsAt(t *testing.T, k int, shared, panics, foreign bool) {
	w, d := newWitness(t, 4, shared)
	w.failAt, w.panics = k, panics
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
		steps = append(steps, b.Place().Step)
	}
	if failure == nil || !strings.Contains(failure.Error(), "the witness ") {
		t.Fatalf("k=%d: %v", k, failure)
	}
	if at := l.Step(); at != int64(len(steps)) {
		t.Errorf("k=%d: the loader stands at step %d after %v", k, at, steps)
	}
	for b, err := range Placed(context.Background(), l, d) {
		if panics != (err != nil) {
			t.Fatalf("k=%d: afterwards %v", k, err)
		}
		if err == nil {
			held = append(held, b)
			steps = append(steps, b.Place().Step)
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
	if n := w.alive(); n != 0 && !panics { // the buffers of a broken backend are only forgotten
		t.Errorf("k=%d: %d live in the backend", k, n)
	}
}

// A step that is cancelled while it is placed is placed again.
func TestCancelledPlacing(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
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
			t.Errorf("the loader stands at step %d", at)
		}
		p.close()
		w.nothingLives(t, d)
	})
}

func TestRingErrors(t *testing.T) {
	_, d := newWitness(t, 4, true)
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
	wantText(t, err, status.InvalidArgument, "loader: step 0 of epoch 0: gomlxfeed: the ring is for 6 blocks of process 0 of its layout, but a loader of another layout or process asks for 4; make the ring with the loader's layout")

	_, err = ring.Place(context.Background(), batch.Place{}, func(int) []byte { return make([]byte, 8) })
	wantText(t, err, status.InvalidArgument, "gomlxfeed: block 0 of the batch has 8 bytes, but float32[2,3] takes 24; a batch that was released or taken has none")

	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	_ = ring.Close() // does nothing
	if n := len(d.drains); n != 0 {
		t.Errorf("the devices remember %d rings", n)
	}
	_, err = ring.Alloc(ring.plan.blocks)
	wantText(t, err, status.InvalidState, "gomlxfeed: the ring is closed; open the devices again, or make another ring")

	_, err = d.Ring(nil)
	wantText(t, err, status.InvalidArgument, "gomlxfeed: there is no layout")
	_ = d.Close()
	_, err = d.Ring(squareLayout(t))
	wantText(t, err, status.InvalidState, "gomlxfeed: cannot allocate: the devices are closed")
}

// Sizes that would end the process are refused.
func TestRingTooLarge(t *testing.T) {
	_, d := newWitness(t, 8, true)
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 8}}},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{1 << 20}, Type: dtype.Float32}},
		Batch:  &layout.BatchSpec{Size: []int{1 << 12}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Ring(lay)
	wantText(t, err, status.ResourceExhausted, "gomlxfeed: one batch takes 137438953472 bytes on the 8 devices of the mesh, but may take 68719476736 of shared memory; use a smaller batch, or partition what is replicated")
}

// A backend that broke gives no batch any more, also where memory waits.
func TestBrokenBackend(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
		next(t, l, d).Release()
		w.failAt, w.panics = w.calls+1, true
		if _, err := d.put(0, dtype.Int32, nil, make([]byte, 4)); err == nil {
			t.Fatal("the witness did not fail")
		}
		for _, err := range Placed(context.Background(), l, d) {
			wantText(t, err, status.InvalidState, "loader: step 1 of epoch 0: gomlxfeed: cannot place a batch: the backend panicked earlier (the witness panics); close these devices and open them again")
		}
		if l.Step() != 1 {
			t.Errorf("the loader stands at step %d", l.Step())
		}
	})
}

// What is freed twice is not given back twice.
func TestFreedTwice(t *testing.T) {
	_, d := newWitness(t, 4, true)
	ring := ringOf(t, d, squareLayout(t))
	var first batch.Memory
	for range 3 {
		m, err := ring.Alloc(ring.plan.blocks)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = m
		}
		m.Free()
		first.Free()
	}
	if n, bytes := ring.Live(); n != 0 || bytes != 0 || len(ring.free) != 1 {
		t.Errorf("%d batches of %d bytes live, %d wait", n, bytes, len(ring.free))
	}
}

// Memory of others is let go once it was sent.
func TestPlaceForgets(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *witness, d *Devices) {
		ring := ringOf(t, d, squareLayout(t))
		data := make([]byte, 64)
		b, err := ring.Place(context.Background(), batch.Place{Step: 3}, func(i int) []byte { return data[:ring.plan.blocks[i].Bytes] })
		if err != nil || b.Place().Step != 3 {
			t.Fatal(err)
		}
		for _, dst := range b.memory.slot.dst {
			if &dst[0] == &data[0] {
				t.Fatal("the batch holds on to memory that is not its own")
			}
		}
		b.Release()
	})
}

// Batches of other rings are copied where they are not where they should be.
func TestRingOfOtherDevices(t *testing.T) {
	_, here := newWitness(t, 4, true)
	_, there := newWitness(t, 4, false)
	for _, ring := range []*Ring{ringOf(t, there, squareLayout(t)), ringOf(t, here, squareLayout(t, 0, 1, 2, 3))} {
		l, err := loader.New(squareSource(24), loader.Options{Layout: squareLayout(t), Allocator: ring})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range Placed(context.Background(), l, here) {
			if err != nil {
				t.Fatal(err)
			}
			compare(t, l, 0, b)
			b.Release()
		}
		_ = l.Close()
		if n, _ := ring.Live(); n != 0 {
			t.Errorf("%d batches of the other ring are live", n)
		}
		_ = ring.Close()
	}
	_ = here.Close()
	_ = there.Close()
	for _, d := range []*Devices{here, there} {
		if n, _ := d.Live(); n != 0 {
			t.Errorf("%d live", n)
		}
	}
}

// Large replicas are copied by a goroutine per device.
func TestLargeReplicas(t *testing.T) {
	_, d := newWitness(t, 3, true)
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 3}}},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{1 << 20}, Type: dtype.Uint8}},
		Batch:  &layout.BatchSpec{Size: []int{3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(synthetic.New(3, source.Field{Name: "x", Type: dtype.Uint8, Shape: []int{1 << 20}}), loader.Options{Layout: lay, Allocator: ringOf(t, d, lay)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := next(t, l, d)
	first, _ := b.Bytes("x", 0)
	for position := 1; position < 3; position++ {
		if again, err := b.Bytes("x", position); err != nil || &again[0] == &first[0] || string(again) != string(first) {
			t.Errorf("the replica at position %d differs (%v)", position, err)
		}
	}
}
