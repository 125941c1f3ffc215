package gomlxfeed

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
)

// Ring allocates the memory of batches on devices. It is the allocator of a loader:
//
//	ring, err := devices.Ring(lay)
//	defer ring.Close()
//	l, err := loader.New(src, loader.Options{Layout: lay, Allocator: ring})
//
// With shared memory (see [Devices.Shared]), the loader gathers a block into the
// buffer of the first device that holds it. For that device this is the only copy.
// The complete batch is then copied to the other holders. Without shared memory,
// the loader gathers into aligned host memory, and the complete batch is sent to
// all devices at once. Both happen during prefetch, so that step n+1 is transferred
// while step n is computed.
//
// Released memory is reused by later batches; at most the layout's prefetch + 3
// slots are idle. The ring never waits for a release. All methods may be called
// from any goroutine.
type Ring struct {
	d       *Devices
	plan    *plan
	maxIdle int         // idle slots
	staging *batch.Heap // nil for shared memory

	mu     sync.Mutex
	free   []*slot // idle slots of shared memory; the last one was used most recently
	closed bool

	batches atomic.Int64 // batches in use
}

// Ring returns an allocator on d for the batches of a layout. The mesh's device
// ids are the numbers of d's devices. If GoMLX cannot express the layout, the
// error is Unsupported; see Mesh.
//
// Several loaders with the same layout may share a ring, at the same time or one
// after the other. So a ring does not end with its loader: idle memory stays on
// the devices until Close of the ring or of d.
func (d *Devices) Ring(lay *layout.Layout) (*Ring, error) {
	p, err := newPlan(lay, d)
	if err != nil {
		return nil, err
	}
	r := &Ring{d: d, plan: p, maxIdle: lay.Prefetch() + 3}
	if !d.Shared() {
		r.staging = batch.NewHeap(r.maxIdle)
	}
	if err := d.addRing(r); err != nil {
		return nil, err
	}
	return r, nil
}

// Alloc returns the memory of one batch. Loaders call it.
func (r *Ring) Alloc(blocks []batch.Block) (batch.Memory, error) {
	if err := r.check(blocks); err != nil {
		return nil, err
	}
	return r.alloc()
}

func (r *Ring) alloc() (*memory, error) {
	s, err := r.slot()
	if err != nil {
		return nil, err
	}
	return r.newMemory(s), nil
}

// newMemory wraps a slot for one batch and counts it.
func (r *Ring) newMemory(s *slot) *memory {
	m := &memory{ring: r, slot: s}
	m.holds.Store(1)
	r.batches.Add(1)
	return m
}

// check rejects the blocks of another layout.
func (r *Ring) check(blocks []batch.Block) error {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return status.Closed("gomlxfeed", "the ring is closed").
			WithHint("open the devices again, or create another ring")
	}
	if !r.plan.fits(blocks) {
		return fail("the ring holds %d blocks of process %d of its layout, but a loader of another layout or process asks for %d", len(r.plan.blocks), r.plan.process, len(blocks)).
			WithHint("create the ring with the loader's layout")
	}
	return nil
}

// slot returns an idle slot or a new one.
func (r *Ring) slot() (*slot, error) {
	// A closed or broken backend is reported here, before the batch is gathered.
	if err := r.d.call("place a batch", func() error { return nil }); err != nil {
		return nil, err
	}
	if r.staging != nil {
		staging, err := r.staging.Alloc(r.plan.blocks)
		if err != nil {
			return nil, err
		}
		return newStaged(r.plan, staging), nil
	}
	if s := r.reuse(); s != nil {
		return s, nil
	}
	return newShared(r.plan, r.d)
}

// reuse returns an idle slot, or nil.
func (r *Ring) reuse() (s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.free) - 1; last >= 0 {
		s, r.free[last] = r.free[last], nil
		r.free = r.free[:last]
	}
	return s
}

// recycle keeps a slot for reuse, or frees it.
func (r *Ring) recycle(s *slot) {
	r.batches.Add(-1)
	if !r.keep(s) {
		s.drop(r.d)
	}
}

// keep makes a slot of shared memory idle, and reports whether it did. It does not keep a
// slot after the program has finalized its tensors.
func (r *Ring) keep(s *slot) bool {
	if s.memory == nil || !s.intact() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := !r.closed && len(r.free) < r.maxIdle
	if keep {
		r.free = append(r.free, s)
	}
	return keep
}

// Live returns the number of batches that are not freed or taken, and their bytes
// on the host. With shared memory these are the bytes of all shards.
func (r *Ring) Live() (batches, bytes int64) {
	batches, bytes = r.batches.Load(), r.plan.bytes
	if r.staging != nil {
		bytes = batch.SlabBytes(r.plan.blocks)
	}
	return batches, batches * bytes
}

// Close frees the idle slots. Batches in use stay valid and are freed when they
// are released. Later calls of Alloc fail. A second Close does nothing.
func (r *Ring) Close() error {
	r.d.removeRing(r)
	r.drain()
	return nil
}

// drain frees the idle slots and closes the ring.
func (r *Ring) drain() {
	r.mu.Lock()
	free := r.free
	r.free, r.closed = nil, true
	r.mu.Unlock()
	for _, s := range free {
		s.drop(r.d)
	}
}

// Place copies a batch from any host memory to the devices. bytes returns the
// blocks, in the order of the layout's process; the caller may reuse them when
// Place returns. With shared memory this costs one copy more than a loader that
// gathers into the ring.
//
//	placed, err := ring.Place(ctx, b.Step(), b.Bytes) // b is a *batch.Batch
func (r *Ring) Place(ctx context.Context, at batch.Step, bytes func(block int) []byte) (*Batch, error) {
	for i, b := range r.plan.blocks {
		if n := len(bytes(i)); n != b.Bytes {
			return nil, fail("block %d of the batch has %d bytes, but %s takes %d", i, n, arrayText(b.Type, b.Shape), b.Bytes).
				WithHint("a batch that was released or taken has no bytes")
		}
	}
	m, err := r.borrow(bytes)
	if err != nil {
		return nil, err
	}
	if err := m.Commit(ctx); err != nil {
		m.Free()
		return nil, err
	}
	if r.staging != nil {
		m.slot.dst = nil // the caller owns the blocks again
	}
	return newBatch(m, at), nil
}

// borrow returns memory with the bytes of a batch. Without shared memory it is the
// caller's own blocks, and Commit sends them to the devices.
func (r *Ring) borrow(bytes func(block int) []byte) (*memory, error) {
	if r.staging != nil {
		s := newSlot(r.plan)
		for i := range s.dst {
			s.dst[i] = bytes(i)
		}
		return r.newMemory(s), nil
	}
	m, err := r.alloc()
	if err != nil {
		return nil, err
	}
	for i := range r.plan.blocks {
		copy(m.Dst(i), bytes(i))
	}
	return m, nil
}
