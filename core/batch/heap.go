package batch

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/status"
)

// MaxSlab is the size of the largest slab that Heap allocates. A larger request is
// an error, because Go ends the process if it cannot allocate the memory.
const MaxSlab = 64 << 30

// Heap is the allocator of Go programs. It allocates one aligned slab of memory per
// batch from Go's heap, and reuses the slab after the batch's release, without
// zeroing. Make a Heap with [NewHeap].
type Heap struct {
	idle int // the largest number of released slabs to keep

	mu     sync.Mutex
	blocks []Block  // the blocks of the last Alloc
	offset []int    // offset of each block in a slab
	size   int      // size of a slab for these blocks
	free   [][]byte // released slabs of this size, the last released last

	live Count
}

// NewHeap returns an allocator that keeps at most idle released slabs for reuse.
// A loader's default allocator is NewHeap(prefetch + 3).
func NewHeap(idle int) *Heap { return &Heap{idle: idle} }

// Alloc returns the memory of one batch. The error is ResourceExhausted if the
// blocks need more than MaxSlab.
func (h *Heap) Alloc(blocks []Block) (Memory, error) {
	if n := SlabBytes(blocks); n > MaxSlab || n < 0 {
		return nil, status.Errorf(status.ResourceExhausted, "batch", "a batch of %d bytes is larger than the limit of %d", n, int64(MaxSlab)).
			WithHint("use a smaller batch or more processes").With("bytes", n)
	}
	offset, slab := h.take(blocks)
	if slab == nil {
		slab = aligned(int(SlabBytes(blocks)))
	}
	h.live.add(1, int64(len(slab)))
	return &heapMemory{heap: h, blocks: blocks, offset: offset, slab: slab}, nil
}

// Live returns the number of allocated batches that were not freed, and their bytes.
func (h *Heap) Live() (batches, bytes int64) { return h.live.Live() }

// Idle returns the number of slabs that are kept for reuse.
func (h *Heap) Idle() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.free)
}

// take returns the offsets of the blocks in a slab, and a released slab if there is one. If
// the blocks differ from the last Alloc, it drops all released slabs.
func (h *Heap) take(blocks []Block) (offset []int, slab []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !same(h.blocks, blocks) {
		h.blocks, h.free = blocks, nil
		h.offset, h.size = slots(blocks)
	}
	if last := len(h.free) - 1; last >= 0 {
		slab, h.free[last] = h.free[last], nil
		h.free = h.free[:last]
	}
	return h.offset, slab
}

// put keeps a released slab for reuse, if it has the current size and fewer than idle
// slabs are kept.
func (h *Heap) put(slab []byte) {
	h.live.add(-1, -int64(len(slab)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(slab) == h.size && len(h.free) < h.idle {
		h.free = append(h.free, slab)
	}
}

// same reports whether a and b are the same slice in memory. A loader passes the same
// slice for every batch.
func same(a, b []Block) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// aligned allocates n bytes at an address that is a multiple of Align. Go's garbage
// collector does not move them.
func aligned(n int) []byte {
	raw := make([]byte, n+Align-1)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (Align - 1)
	return raw[skip : skip+n : skip+n]
}

// heapMemory is one use of a slab by one batch. Every use has its own freed flag, so
// a second Free of an earlier batch does not free the slab of the current one.
type heapMemory struct {
	heap   *Heap
	blocks []Block
	offset []int
	slab   []byte
	freed  atomic.Bool
}

func (m *heapMemory) Dst(i int) []byte {
	start, stop := m.offset[i], m.offset[i]+m.blocks[i].Bytes
	return m.slab[start:stop:stop]
}

func (m *heapMemory) Commit(context.Context) error { return nil }

func (m *heapMemory) Free() {
	if m.freed.CompareAndSwap(false, true) {
		m.heap.put(m.slab)
	}
}
