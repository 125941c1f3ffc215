package gomlxfeed

import (
	"context"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

const squareShards = 8 // shards in a batch of squareLayout

// Shared memory is reused, and the device sees exactly the bytes of the gather.
func TestRingIsReused(t *testing.T) {
	counts, d := newCountingBackend(t, 4, true)
	l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
	for range 100 {
		b := next(t, l, d)
		compare(t, l, 0, b)
		b.Release()
		b.Release() // does nothing
	}
	if counts.calls != squareShards {
		t.Errorf("100 batches took %d buffers, want %d", counts.calls, squareShards)
	}
	if counts.copied != 0 {
		t.Errorf("%d bytes were copied in", counts.copied)
	}
}

// A batch that is not released keeps its value, and the loader does not wait for
// it.
func TestHeldBatchesStay(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
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
				t.Errorf("%d pieces of host memory are live and %d are idle, want %d", n, ring.staging.Idle(), staging)
			}
		}
		idle := 0 // shared memory is kept for reuse, within bounds
		if d.Shared() {
			idle = (l.Layout().Prefetch() + 3) * squareShards
		}
		if n := counts.alive(); n != idle {
			t.Errorf("%d buffers are live, want %d", n, idle)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		counts.nothingLives(t, d)
	})
}

// Held memory is not overwritten, even after the batch is released.
func TestHold(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
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
		wantText(t, err, status.InvalidState, "gomlxfeed: the batch is held, so its tensors cannot be taken; call the function that Hold returned first")
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
				t.Error("the slot is not reused")
			}
		} else if err := d.read(shard, after); err == nil {
			t.Error("the shard was not freed with the last hold")
		}
		_, err = b.Hold()
		wantText(t, err, status.InvalidState, "gomlxfeed: this batch was released or taken before; a batch has one owner: release it or take its tensors, once")
	})
}

// The caller owns the tensors that it takes: no count includes them, no later
// batch writes to them, and the caller only has to finalize them.
func TestTake(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		l := squareLoader(t, d, loader.Options{Epochs: -1, Prefetch: -1})
		b := next(t, l, d)
		list, err := b.Take()
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		if n, bytes := d.Live(); n != 0 || bytes != 0 {
			t.Errorf("%d buffers of %d bytes are still counted", n, bytes)
		}
		if n := l.Stats().LiveBatches; n != 0 {
			t.Errorf("%d batches are still counted", n)
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
		counts.nothingLives(t, d)
	})
}

// Finalizing a tensor that belongs to a batch breaks this batch only.
func TestFinalizedByOthers(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
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
		counts.nothingLives(t, d)
	})
}

// A second Free does not return a slot twice, and no Free returns a slot before
// the last hold ends.
func TestFreedTwice(t *testing.T) {
	_, d := newCountingBackend(t, 4, true)
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
	held, err := ring.alloc()
	if err != nil {
		t.Fatal(err)
	}
	held.holds.Add(1)
	held.Free()
	held.Free()
	if n, _ := ring.Live(); n != 1 {
		t.Errorf("%d batches live while one is held", n)
	}
	held.unhold()
	if n, bytes := ring.Live(); n != 0 || bytes != 0 || len(ring.free) != 1 {
		t.Errorf("%d batches of %d bytes are live, %d slots are idle", n, bytes, len(ring.free))
	}
}

// The ring keeps no reference to the caller's memory after sending it.
func TestPlaceForgets(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		ring := ringOf(t, d, squareLayout(t))
		data := make([]byte, 64)
		b, err := ring.Place(context.Background(), batch.Step{Index: 3}, func(i int) []byte { return data[:ring.plan.blocks[i].Bytes] })
		if err != nil || b.Step().Index != 3 {
			t.Fatal(err)
		}
		for _, dst := range b.memory.slot.dst {
			if &dst[0] == &data[0] {
				t.Fatal("the batch keeps memory of the caller")
			}
		}
		b.Release()
	})
}

// Batches of another ring are copied unless they are on the right devices.
func TestRingOfOtherDevices(t *testing.T) {
	_, here := newCountingBackend(t, 4, true)
	_, there := newCountingBackend(t, 4, false)
	lay := squareLayout(t)
	for _, ring := range []*Ring{ringOf(t, there, lay), ringOf(t, here, squareLayout(t, 0, 1, 2, 3))} {
		l, err := loader.New(squareSource(24), loader.Options{Layout: lay, Allocator: ring})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range Placed(context.Background(), l, here) {
			if err != nil {
				t.Fatal(err)
			}
			compare(t, l, 0, b)
			if on, err := b.Tensor("x").Shards()[0].Backend(); err != nil || on != here.Backend() {
				t.Errorf("the batch is on another backend (%v)", err)
			}
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

// Large replicas are copied by one goroutine per device.
func TestLargeReplicas(t *testing.T) {
	_, d := newCountingBackend(t, 3, true)
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
