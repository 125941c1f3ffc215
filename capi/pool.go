package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

// spare is the number of idle slots that a pool keeps in addition to prefetch. A
// slot is the memory of one batch. JAX frees its arrays up to three batches late.
const spare = 3

// pool allocates the memory of batches in C. A loader and its passes (loaders of
// one epoch each, see oneEpoch) own it together.
type pool struct {
	c       *C.mfi_pool
	owners  atomic.Int32
	offsets []int
	sizes   []int
}

// newPool creates the pool for the blocks of a process, with one owner.
func newPool(l *layout.Layout, process, prefetch int) (*pool, error) {
	rows := int64(-1)
	if len(l.BatchShape()) == 1 {
		rows = l.BatchSize()
	}
	blocks := l.Process(process).Blocks
	p, err := emptyPool(len(blocks), prefetch+spare, rows)
	if err != nil {
		return nil, err
	}
	arrays := l.Arrays()
	for _, b := range blocks {
		a := &arrays[b.Array]
		_, dims := blockDims(a.Shape, b)
		description := C.mfi_block{
			array: C.int32_t(b.Array), role: roles[a.Kind], dtype: dlpack(a.Type),
			ndim: C.int32_t(len(b.Index)), n_holders: C.int64_t(len(b.Holders)), bytes: C.int64_t(bytesOf(a.Type, b.Index.Shape())),
		}
		if err := p.add(a.Name, description, dims); err != nil {
			p.release()
			return nil, err
		}
	}
	return p, nil
}

// roles has the kinds of arrays that are not columns of a record batch.
var roles = map[layout.Kind]C.mfi_role{layout.Mask: C.MFI_MASK}

// emptyPool creates a pool for n blocks, with one owner. Rows is the argument of
// mfi_pool_new.
func emptyPool(n, idle int, rows int64) (*pool, error) {
	p := &pool{c: C.mfi_pool_new(C.int32_t(n), C.int64_t(idle), C.int64_t(rows))}
	if p.c == nil {
		return nil, noMemory("the description of %d blocks", n)
	}
	return p.retain(), nil
}

// add describes the next block to C.
func (p *pool) add(name string, b C.mfi_block, dims *C.int64_t) error {
	at := C.mfi_pool_add(p.c, b, chars(name), C.size_t(len(name)), dims)
	if at < 0 {
		return noMemory("the description of array %q", name)
	}
	p.offsets, p.sizes = append(p.offsets, int(at)), append(p.sizes, int(b.bytes))
	return nil
}

// bytesOf returns the size of an array.
func bytesOf(t dtype.Type, shape []int) int {
	bytes := t.Size()
	for _, n := range shape {
		bytes *= n
	}
	return bytes
}

// blockDims lists the numbers that describe a block: its shape, its start, the
// global shape, and its holders.
func blockDims(global []int, b layout.Block) ([]int64, *C.int64_t) {
	var start []int
	for _, r := range b.Index {
		start = append(start, r[0])
	}
	return int64s(b.Index.Shape(), start, global, b.Holders)
}

// retain adds an owner.
func (p *pool) retain() *pool {
	p.owners.Add(1)
	return p
}

// release drops an owner. The last one closes the pool. Delivered batches stay
// valid.
func (p *pool) release() {
	if p.owners.Add(-1) == 0 {
		C.mfi_pool_close(p.c)
	}
}

// bytes returns the size of one batch.
func (p *pool) bytes() int64 { return int64(C.mfi_pool_bytes(p.c)) }

func (p *pool) counts() C.mfi_counts { return C.mfi_pool_counts(p.c) }

// Alloc implements batch.Allocator.
func (p *pool) Alloc(blocks []batch.Block) (batch.Memory, error) {
	if len(blocks) != len(p.sizes) {
		return nil, status.Errorf(status.Internal, "capi", "the pool is for batches of %d blocks, not %d", len(p.sizes), len(blocks))
	}
	m, err := p.slot()
	if err != nil {
		return nil, err
	}
	return m, nil
}

// slot returns the memory of one batch.
func (p *pool) slot() (*memory, error) {
	slot := C.mfi_pool_get(p.c)
	if slot == nil {
		return nil, noMemory("a batch of %d bytes", p.bytes()).
			WithHint("release batches earlier, or make the batch or the prefetch depth smaller")
	}
	return &memory{pool: p, slot: slot, data: C.mfi_slot_data(slot)}, nil
}

// Live implements batch.Counter: it counts batches that are read ahead or delivered.
func (p *pool) Live() (batches, bytes int64) {
	c := p.counts()
	n := int64(c.all - c.idle)
	return n, n * p.bytes()
}

// memory is one slot of a pool while Go owns it.
type memory struct {
	pool *pool
	slot *C.mfi_slot
	data unsafe.Pointer

	described bool // see describe
}

// describe records which batch the slot holds, and the loader's state after it.
// Later calls do nothing.
func (m *memory) describe(step batch.Step, after loader.State) {
	if m.described {
		return
	}
	m.described = true
	state := after.JSON()
	C.mfi_slot_describe(m.slot, C.mfi_step{
		epoch: C.int64_t(step.Epoch), step: C.int64_t(step.Index), position: C.int64_t(step.Position), rows: C.int64_t(step.Valid),
		next_epoch: C.int64_t(step.After.Epoch), next_position: C.int64_t(step.After.Position), bad: C.int64_t(step.Bad),
	}, (*C.char)(unsafe.Pointer(unsafe.SliceData(state))), C.size_t(len(state)))
}

// Dst implements batch.Memory.
func (m *memory) Dst(block int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(m.data, m.pool.offsets[block])), m.pool.sizes[block])
}

// Commit implements batch.Memory.
func (m *memory) Commit(context.Context) error { return nil }

// Free implements batch.Memory.
func (m *memory) Free() { C.mfi_pool_put(m.slot) }
