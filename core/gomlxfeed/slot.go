package gomlxfeed

import (
	"context"
	"sync/atomic"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// slot is the memory of one batch on all devices of the mesh.
type slot struct {
	plan    *plan
	dst     [][]byte            // where the gather writes each block
	staging batch.Memory        // host memory that dst is part of; nil if the gather writes to shards
	shards  [][]*tensors.Tensor // by array and mesh position
	memory  [][][]byte          // memory of the shards; nil unless Devices.Shared
	arrays  []*dtensor.Tensor   // global arrays over the shards, once these exist
}

func newSlot(p *plan) *slot {
	s := &slot{plan: p, dst: make([][]byte, len(p.blocks)), shards: make([][]*tensors.Tensor, len(p.arrays))}
	for i := range s.shards {
		s.shards[i] = make([]*tensors.Tensor, len(p.assignment))
	}
	return s
}

// newShared returns a slot for devices with buffers that the host can write (see
// Devices.Shared). A block is gathered into the buffer of its first holder.
func newShared(p *plan, d *Devices) (*slot, error) {
	s := newSlot(p)
	s.memory = make([][][]byte, len(p.arrays))
	for i, a := range p.arrays {
		s.memory[i] = make([][]byte, len(p.assignment))
		for position, device := range p.assignment {
			t, bytes, err := d.empty(device, a.shape)
			if err != nil {
				s.drop(d)
				return nil, err
			}
			s.shards[i][position], s.memory[i][position] = t, bytes
			if a.first[position] == position {
				s.dst[a.block[position]] = bytes
			}
		}
	}
	if err := s.join(d); err != nil {
		s.drop(d)
		return nil, err
	}
	return s, nil
}

// newStaged returns a slot that gathers its blocks into host memory. The method commit then
// sends them to the devices.
func newStaged(p *plan, staging batch.Memory) *slot {
	s := newSlot(p)
	s.staging = staging
	for i := range s.dst {
		s.dst[i] = staging.Dst(i)
	}
	return s
}

// join builds the global arrays from the shards.
func (s *slot) join(d *Devices) error {
	s.arrays = make([]*dtensor.Tensor, len(s.shards))
	return d.call("join shards", func() (err error) {
		for i, a := range s.plan.arrays {
			if s.arrays[i], err = dtensor.NewTensor(a.spec, s.shards[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// commit transfers the blocks to all devices that hold them.
func (s *slot) commit(ctx context.Context, d *Devices) error {
	if s.memory != nil {
		return s.each(ctx, s.plan.replicated() >= minParallelCopy, s.replicate)
	}
	send := func(array, position int) error { return s.send(d, array, position) }
	if err := s.each(ctx, true, send); err != nil {
		return err
	}
	return s.join(d)
}

// minParallelCopy is the number of bytes above which copying uses a goroutine per
// device.
const minParallelCopy = 4 << 20

// send transfers a block to a position of the mesh.
func (s *slot) send(d *Devices, array, position int) (err error) {
	a := s.plan.arrays[array]
	s.shards[array][position], err = d.put(s.plan.assignment[position], a.shape, s.dst[a.block[position]])
	return err
}

// replicate copies a block from its first holder to another.
func (s *slot) replicate(array, position int) error {
	if a := s.plan.arrays[array]; a.first[position] != position {
		copy(s.memory[array][position], s.dst[a.block[position]])
	}
	return nil
}

// each calls do for every array at every position, with all positions at once if
// parallel is true. It waits for all calls that have begun, and returns the error
// of the lowest position.
func (s *slot) each(ctx context.Context, parallel bool, do func(array, position int) error) error {
	at := func(position int) error {
		for array := range s.plan.arrays {
			if ctx.Err() != nil {
				return interrupted(ctx)
			}
			if err := do(array, position); err != nil {
				return err
			}
		}
		return nil
	}
	n := len(s.plan.assignment)
	if parallel {
		// With ctx itself, Parallel would return when ctx ends, while calls still use the
		// batch's memory.
		return guard.Parallel(context.WithoutCancel(ctx), "gomlxfeed", n, n, at)
	}
	for position := range n {
		if err := at(position); err != nil {
			return err
		}
	}
	return nil
}

func interrupted(ctx context.Context) error {
	code := status.CodeOf(ctx.Err())
	return status.Errorf(code, "gomlxfeed", "a batch was not placed: %w", ctx.Err()).WithHint("ask again: nothing is lost")
}

// intact reports whether all tensors are valid. A program that finalizes an array
// without Take makes them invalid.
func (s *slot) intact() bool {
	for i, shards := range s.shards {
		if !s.arrays[i].Ok() {
			return false
		}
		for _, t := range shards {
			if !t.Ok() {
				return false
			}
		}
	}
	return true
}

// drop frees all tensors and the staging memory. It ignores errors: a panic marks the
// backend as broken, so the next call into it fails.
func (s *slot) drop(d *Devices) {
	for array, shards := range s.shards {
		for i, t := range shards {
			if t != nil {
				_ = d.free(t, s.plan.arrays[array].bytes)
				shards[i] = nil
			}
		}
	}
	if s.staging != nil {
		s.staging.Free()
		s.staging, s.dst = nil, nil
	}
}

// memory is a slot in use by one batch. Every batch has a new one, so that a late
// Free of an old batch cannot free the slot of a newer batch.
type memory struct {
	ring  *Ring
	slot  *slot
	holds atomic.Int32 // references: one for the batch itself, and one for each Batch.Hold
	freed atomic.Bool
}

func (m *memory) Dst(block int) []byte { return m.slot.dst[block] }

func (m *memory) Commit(ctx context.Context) error { return m.slot.commit(ctx, m.ring.d) }

func (m *memory) Free() {
	if m.freed.CompareAndSwap(false, true) {
		m.unhold()
	}
}

// unhold drops a reference. Dropping the last one returns the slot to the ring.
func (m *memory) unhold() {
	if m.holds.Add(-1) == 0 {
		m.ring.recycle(m.slot)
	}
}
