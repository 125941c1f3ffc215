package gomlxfeed

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
)

// Ring is the memory of batches on devices. It is the allocator of a loader:
//
//	ring, err := devices.Ring(lay)
//	defer ring.Close()
//	l, err := loader.New(src, loader.Options{Layout: lay, Allocator: ring})
//
// Where the devices' memory is shared, the loader gathers straight into the
// buffer of the first device that holds a block, which is the one copy there
// is; when the batch is complete it is copied on to the other holders. Else the
// loader gathers into aligned host memory, and the complete batch is sent to
// all devices at once. Both happen where the loader reads ahead, so that step
// n+1 is on its way to the devices while step n is computed.
//
// Memory goes round: what is released serves a later batch, and as many as the
// layout's prefetch and three wait for it. The ring never waits for a release.
// All methods may be called from any goroutine.
type Ring struct {
	d       *Devices
	plan    *plan
	idle    int         // slots that may wait for reuse
	staging *batch.Heap // where the memory is not shared
	forget  func()      // at Close of the devices

	mu     sync.Mutex
	known  *batch.Block // the first of blocks that were found to fit
	free   []*slot      // shared ones that wait, the warmest last
	closed bool

	batches, bytes atomic.Int64 // that live
}

// Ring gives memory on d for the batches of a layout. The mesh's device ids are
// the numbers of d's devices. It is Unsupported for layouts that GoMLX cannot
// express; Mesh says which.
//
// Several loaders may share a ring, one after the other too, if they have the
// same layout. So a ring does not end with its loader: what waits in it stays
// on the devices until its Close, or that of d.
func (d *Devices) Ring(lay *layout.Layout) (*Ring, error) {
	p, err := newPlan(lay, d)
	if err != nil {
		return nil, err
	}
	r := &Ring{d: d, plan: p, idle: lay.Prefetch() + 3}
	if !d.Shared() {
		r.staging = batch.NewHeap(r.idle)
	}
	if r.forget, err = d.atClose(r.drain); err != nil {
		return nil, err
	}
	return r, nil
}

// Alloc gives the memory of one batch. Loaders call it.
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
	return r.lend(s), nil
}

// lend puts a slot into the hands of a batch.
func (r *Ring) lend(s *slot) *memory {
	m := &memory{ring: r, slot: s}
	m.holds.Store(1)
	r.count(1)
	return m
}

// check refuses blocks of another layout. A loader always asks with the same
// list, which is looked at once.
func (r *Ring) check(blocks []batch.Block) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := unsafe.SliceData(blocks)
	if r.closed {
		return status.Closed("gomlxfeed", "the ring is closed").
			WithHint("open the devices again, or make another ring")
	}
	if len(blocks) == len(r.plan.blocks) && len(blocks) > 0 && first == r.known {
		return nil
	}
	if !r.plan.fits(blocks) {
		return fail("the ring is for %d blocks of process %d of its layout, but a loader of another layout or process asks for %d", len(r.plan.blocks), r.plan.process, len(blocks)).
			WithHint("make the ring with the loader's layout")
	}
	r.known = first
	return nil
}

// slot gives one that waits, or a new one.
func (r *Ring) slot() (*slot, error) {
	if err := r.d.call("place a batch", func() error { return nil }); err != nil {
		return nil, err // at once, rather than when the batch is gathered
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

func (r *Ring) reuse() (s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.free) - 1; last >= 0 {
		s, r.free[last] = r.free[last], nil
		r.free = r.free[:last]
	}
	return s
}

// give takes a slot back.
func (r *Ring) give(s *slot) {
	r.count(-1)
	if !r.keep(s) {
		s.drop(r.d)
	}
}

func (r *Ring) keep(s *slot) bool {
	if s.memory == nil || !s.intact() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := !r.closed && len(r.free) < r.idle
	if keep {
		r.free = append(r.free, s)
	}
	return keep
}

// Live counts the batches that were not freed or taken yet, and their bytes on
// the host: in shared memory those of all shards.
func (r *Ring) Live() (batches, bytes int64) { return r.batches.Load(), r.bytes.Load() }

func (r *Ring) count(batches int64) {
	bytes := r.plan.bytes
	if r.staging != nil {
		bytes = batch.SlabBytes(r.plan.blocks)
	}
	r.batches.Add(batches)
	r.bytes.Add(batches * bytes)
}

// Close frees what waits in the ring. Batches that are held stay valid, and are
// freed when they are released. Loaders get no more memory from it. Closing
// again does nothing.
func (r *Ring) Close() error {
	r.forget()
	r.drain()
	return nil
}

func (r *Ring) drain() {
	r.mu.Lock()
	free := r.free
	r.free, r.closed = nil, true
	r.mu.Unlock()
	for _, s := range free {
		s.drop(r.d)
	}
}

// Place puts a batch on the devices that lies in any memory: bytes gives its
// blocks, in the order of the layout's process, and they may be used again when
// Place returns. In shared memory it is one copy more than a loader that gathers
// into the ring.
//
//	placed, err := ring.Place(ctx, b.Place(), b.Bytes) // b is a *batch.Batch
func (r *Ring) Place(ctx context.Context, at batch.Place, bytes func(block int) []byte) (*Batch, error) {
	for i, b := range r.plan.blocks {
		if n := len(bytes(i)); n != b.Bytes {
			return nil, fail("block %d of the batch has %d bytes, but %s takes %d", i, n, arrayText(b.Type, b.Shape), b.Bytes).
				WithHint("a batch that was released or taken has none")
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
		m.slot.dst = nil // they are the caller's again
	}
	return newBatch(m, at), nil
}

// borrow gives memory that holds the bytes of a batch, or points to them where
// they are sent from there.
func (r *Ring) borrow(bytes func(block int) []byte) (*memory, error) {
	if r.staging != nil {
		s := newSlot(r.plan)
		for i := range s.dst {
			s.dst[i] = bytes(i)
		}
		return r.lend(s), nil
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
