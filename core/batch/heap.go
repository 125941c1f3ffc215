package batch

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/status"
)

// MaxSlab is the largest slab that Heap allocates. A larger request is an error;
// Go would end the process.
const MaxSlab = 64 << 30

// Heap is the allocator of Go programs. It allocates one aligned slab per batch from
// Go's heap, and reuses it after its release, without zeroing. Make it with
// [NewHeap].
type Heap struct {
	idle int // at most so many released slabs are kept

	mu     sync.Mutex
	blocks []Block // offset and size are computed for these
	offset []int
	size   int
	free   [][]byte // released slabs of that size, the last released last

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

// Live returns how many batches were not freed, and their bytes.
func (h *Heap) Live() (batches, bytes int64) { return h.live.Live() }

// Idle returns the number of slabs that are kept for reuse.
func (h *Heap) Idle() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.free)
}

// take returns the offsets of the blocks, and a released slab if there is one.
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

func (h *Heap) put(slab []byte) {
	h.live.add(-1, -int64(len(slab)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(slab) == h.size && len(h.free) < h.idle {
		h.free = append(h.free, slab)
	}
}

// same reports whether both are the same list. The loader always passes the same.
func same(a, b []Block) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// aligned allocates n bytes at a multiple of Align. Go's heap does not move them.
func aligned(n int) []byte {
	raw := make([]byte, n+Align-1)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (Align - 1)
	return raw[skip : skip+n : skip+n]
}

// heapMemory is one use of a slab. So a second Free by an earlier user of the slab
// does not free it for the current one.
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
