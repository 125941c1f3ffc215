package batch

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/status"
)

// MaxSlab is the largest slab that Heap makes: a request beyond it is an
// error, not the end of the process.
const MaxSlab = 64 << 30

// Heap is the allocator of Go programs: one aligned slab per batch, from Go's
// heap, used again after its release. It never zeroes, and it never waits.
// Make it with [NewHeap].
type Heap struct {
	idle int // slabs that may wait for reuse

	mu     sync.Mutex
	blocks []Block // that offsets and size belong to
	offset []int
	size   int
	free   [][]byte // released slabs of that size, the warmest last

	live Count
}

// NewHeap gives an allocator that keeps at most idle released slabs for reuse;
// the garbage collector gets the others. A loader's own is NewHeap(prefetch + 3).
func NewHeap(idle int) *Heap { return &Heap{idle: idle} }

// Alloc gives the memory of one batch. It is ResourceExhausted for blocks of
// more than MaxSlab in all.
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

// Live counts the batches that were not freed yet, and their bytes.
func (h *Heap) Live() (batches, bytes int64) { return h.live.Live() }

// Idle gives the number of slabs that wait for reuse.
func (h *Heap) Idle() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.free)
}

// take gives where the blocks lie, and a released slab if there is one.
func (h *Heap) take(blocks []Block) (offset []int, slab []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !same(h.blocks, blocks) {
		h.blocks, h.free = blocks, nil
		h.offset, h.size = Slots(blocks)
	}
	if last := len(h.free) - 1; last >= 0 {
		slab, h.free[last] = h.free[last], nil
		h.free = h.free[:last]
	}
	return h.offset, slab
}

func (h *Heap) put(slab []byte) {
	h.live.add(-1, -int64(len(slab)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(slab) == h.size && len(h.free) < h.idle {
		h.free = append(h.free, slab)
	}
}

// same says whether both are the same list, which is all that the loader uses.
func same(a, b []Block) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// aligned gives n bytes that begin at a multiple of Align. Go's heap does not
// move, so they stay there.
func aligned(n int) []byte {
	raw := make([]byte, n+Align-1)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (Align - 1)
	return raw[skip : skip+n : skip+n]
}

// heapMemory is made anew for every batch, so that a late Free of an old one
// cannot free the slab's next user.
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
