package batch_test

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// blocks returns blocks of the given sizes.
func blocks(bytes ...int) []batch.Block {
	list := make([]batch.Block, len(bytes))
	for i, n := range bytes {
		list[i] = batch.Block{Array: i, Type: dtype.Uint8, Shape: []int{n}, Bytes: n, Holders: []int{i}}
	}
	return list
}

func alloc(t testing.TB, h *batch.Heap, b []batch.Block) batch.Memory {
	t.Helper()
	m, err := h.Alloc(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func wantLive(t testing.TB, c batch.Counter, batches, bytes int64) {
	t.Helper()
	if n, b := c.Live(); n != batches || b != bytes {
		t.Errorf("%d batches of %d bytes live, want %d of %d", n, b, batches, bytes)
	}
}

// Every block has a slot of its own, at a multiple of batch.Align.
func TestSlabBytes(t *testing.T) {
	if n := batch.SlabBytes(blocks(1, 0, 64, 65, 7)); n != 320 {
		t.Errorf("the slab has %d bytes, want 320", n)
	}
}

func TestBlocksAreAlignedAndApart(t *testing.T) {
	h := batch.NewHeap(2)
	b := blocks(1, 3, 64, 65, 4096, 5)
	m := alloc(t, h, b)
	for i := range b {
		dst := m.Dst(i)
		if len(dst) != b[i].Bytes || cap(dst) != b[i].Bytes || address(dst)%batch.Align != 0 {
			t.Errorf("block %d: length %d, capacity %d, address %#x", i, len(dst), cap(dst), address(dst))
		}
		for k := range dst {
			dst[k] = byte(i + 1)
		}
	}
	for i := range b {
		for _, v := range m.Dst(i) {
			if v != byte(i+1) {
				t.Fatalf("block %d was overwritten", i)
			}
		}
	}
	m.Free()
}

// A heap keeps up to the given number of released slabs, and reuses the last
// released first.
func TestHeapReusesSlabs(t *testing.T) {
	h := batch.NewHeap(2)
	b := blocks(100, 1)
	var all []batch.Memory
	for range 4 {
		all = append(all, alloc(t, h, b))
	}
	wantLive(t, h, 4, 4*192)
	for i := range 4 {
		all[i].Free()
		all[i].Free() // the second Free does nothing
	}
	wantLive(t, h, 0, 0)
	again := []batch.Memory{alloc(t, h, b), alloc(t, h, b), alloc(t, h, b)}
	if address(again[0].Dst(0)) != address(all[1].Dst(0)) || address(again[1].Dst(0)) != address(all[0].Dst(0)) {
		t.Error("the two slabs that were kept are not reused, the last released first")
	}
	for _, old := range all { // they are referenced, so their memory is not allocated anew
		if address(again[2].Dst(0)) == address(old.Dst(0)) {
			t.Error("a third slab was kept")
		}
	}
	all[1].Free() // by an earlier user of the slab
	wantLive(t, h, 3, 3*192)
	for _, m := range again {
		m.Free()
	}
}

// For other blocks, a heap drops the slabs that it kept, and does not keep old ones.
func TestHeapDropsSlabsOfOtherBlocks(t *testing.T) {
	h := batch.NewHeap(2)
	small := blocks(7)
	late := alloc(t, h, blocks(100))
	other := alloc(t, h, small)
	late.Free()
	again := alloc(t, h, small)
	if address(again.Dst(0)) == address(late.Dst(0)) {
		t.Error("a slab of other blocks was reused")
	}
	other.Free()
	again.Free()
	wantLive(t, h, 0, 0)
}

func TestHeapRefusesHugeBatches(t *testing.T) {
	_, err := batch.NewHeap(1).Alloc(blocks(40<<30, 40<<30))
	const want = "batch: a batch of 85899345920 bytes is larger than the limit of 68719476736; use a smaller batch or more processes"
	if status.CodeOf(err) != status.ResourceExhausted || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestOwnership(t *testing.T) {
	h, count := batch.NewHeap(4), &batch.Count{}
	b := blocks(10, 20)
	step := batch.Step{Cursor: batch.Cursor{Epoch: 1, Position: 8}, Index: 1, Valid: 8, After: batch.Cursor{Epoch: 2}}
	released := batch.New(b, alloc(t, h, b), step, count)
	taken := batch.New(b, alloc(t, h, b), step, count)
	wantLive(t, count, 2, 256)
	if bytes, err := released.Bytes(1); err != nil || len(bytes) != 20 || len(released.Blocks()) != 2 || released.Step() != step {
		t.Error("the batch differs from what it was made of")
	}
	for _, i := range []int{-1, 2} {
		if _, err := released.Bytes(i); status.CodeOf(err) != status.OutOfRange {
			t.Errorf("block %d: %v", i, err)
		}
	}

	released.Release()
	released.Release()
	wantLive(t, count, 1, 128)
	wantLive(t, h, 1, 128)
	if bytes, err := released.Bytes(0); bytes != nil || status.CodeOf(err) != status.InvalidState {
		t.Errorf("a released batch returns memory that another may use, %v", err)
	}

	m, err := taken.Take()
	if err != nil {
		t.Fatal(err)
	}
	wantLive(t, count, 0, 0)
	wantLive(t, h, 1, 128) // the allocator counts it until Free
	taken.Release()
	wantLive(t, h, 1, 128)
	const want = "batch: the memory of this batch was released or taken before; a batch has one owner: take it once, and not after Release"
	for _, b := range []*batch.Batch{released, taken} {
		if _, err := b.Take(); status.CodeOf(err) != status.InvalidState || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	m.Free()
	wantLive(t, h, 0, 0)
}

// If Release and Take run concurrently, one call succeeds.
func TestOneOwner(t *testing.T) {
	h, count := batch.NewHeap(4), &batch.Count{}
	b := blocks(10)
	for range 200 {
		x := batch.New(b, alloc(t, h, b), batch.Step{}, count)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if i%2 == 0 {
					x.Release()
				} else if m, err := x.Take(); err == nil {
					m.Free()
				}
			})
		}
		all.Wait()
	}
	wantLive(t, count, 0, 0)
	wantLive(t, h, 0, 0)
}

func TestCountIsOptional(t *testing.T) {
	h := batch.NewHeap(1)
	b := blocks(1)
	var none *batch.Count
	batch.New(b, alloc(t, h, b), batch.Step{}, none).Release()
	wantLive(t, none, 0, 0)
}

func BenchmarkHeap(b *testing.B) {
	h, list := batch.NewHeap(4), blocks(1<<20, 512)
	b.ReportAllocs()
	for b.Loop() {
		m := alloc(b, h, list)
		batch.New(list, m, batch.Step{}, nil).Release()
	}
}
