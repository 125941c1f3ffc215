package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

// spare is how many idle pieces of memory a pool keeps beyond the prefetch
// depth: JAX drops what it was given up to three batches late.
const spare = 3

// pool is the memory of one loader's batches, in C. It is the loader's
// allocator.
type pool struct {
	c       *C.mfi_pool
	offsets []int
	sizes   []int
}

// newPool makes the pool for the blocks of one process.
func newPool(l *layout.Layout, blocks []layout.Block, prefetch int) (*pool, error) {
	p := &pool{c: C.mfi_pool_new(C.int32_t(len(blocks)), C.int64_t(prefetch+spare))}
	if p.c == nil {
		return nil, noMemory("the description of %d blocks", len(blocks))
	}
	arrays := l.Arrays()
	for _, b := range blocks {
		if err := p.add(&arrays[b.Array], b); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func noMemory(format string, args ...any) error {
	return status.Errorf(status.ResourceExhausted, "capi", "there is no memory for %s", fmt.Sprintf(format, args...))
}

// add describes the next block to C.
func (p *pool) add(a *layout.Array, b layout.Block) error {
	shape, bytes := b.Index.Shape(), a.Type.Size()
	for _, n := range shape {
		bytes *= n
	}
	var start []int
	for _, r := range b.Index {
		start = append(start, r[0])
	}
	dims := int64s(shape, start, a.Shape, b.Holders)
	code, bits := a.Type.DLPack()
	facts := C.mfi_block{
		array: C.int32_t(b.Array), dtype: C.mf_dtype{code: C.uint8_t(code), bits: C.uint8_t(bits), lanes: 1},
		ndim: C.int32_t(len(shape)), n_holders: C.int64_t(len(b.Holders)), bytes: C.int64_t(bytes),
	}
	at := C.mfi_pool_add(p.c, facts, chars(a.Name), C.size_t(len(a.Name)), (*C.int64_t)(unsafe.SliceData(dims)))
	if at < 0 {
		return noMemory("the description of array %q", a.Name)
	}
	p.offsets, p.sizes = append(p.offsets, int(at)), append(p.sizes, bytes)
	return nil
}

// int64s joins lists of numbers. It is never empty, so that it has an address.
func int64s(lists ...[]int) []int64 {
	out := make([]int64, 0, 1)
	for _, list := range lists {
		for _, n := range list {
			out = append(out, int64(n))
		}
	}
	return out[:max(len(out), 1)][:len(out):cap(out)]
}

// bytes gives the size of one batch.
func (p *pool) bytes() int64 { return int64(C.mfi_pool_bytes(p.c)) }

// Alloc implements batch.Allocator.
func (p *pool) Alloc(blocks []batch.Block) (batch.Memory, error) {
	if len(blocks) != len(p.sizes) {
		return nil, status.Errorf(status.Internal, "capi", "a batch of %d blocks was asked from a pool for %d", len(blocks), len(p.sizes))
	}
	slot := C.mfi_pool_get(p.c)
	if slot == nil {
		return nil, noMemory("a batch of %d bytes", p.bytes()).(*status.Error).
			WithHint("release batches earlier, or make the batch or the prefetch depth smaller")
	}
	return &memory{pool: p, slot: slot, data: C.mfi_slot_data(slot)}, nil
}

// Live implements batch.Counter: batches that are read ahead or handed out.
func (p *pool) Live() (batches, bytes int64) {
	c := C.mfi_pool_counts(p.c)
	n := int64(c.all - c.idle)
	return n, n * p.bytes()
}

// counts gives what the statistics of a loader need.
func (p *pool) counts() (live, idle, all int64) {
	c := C.mfi_pool_counts(p.c)
	return int64(c.live), int64(c.idle), int64(c.all)
}

// close ends the pool for the loader. Batches that are out keep what they need.
func (p *pool) close() { C.mfi_pool_close(p.c) }

// memory is one piece of a pool's memory while Go owns it.
type memory struct {
	pool *pool
	slot *C.mfi_slot
	data unsafe.Pointer

	described bool
}

// describe writes down which batch the memory holds, once.
func (m *memory) describe(step batch.Step, after loader.State) {
	if m.described {
		return
	}
	m.described = true
	state := after.JSON()
	C.mfi_slot_describe(m.slot, C.mfi_place{
		epoch: C.int64_t(step.Epoch), step: C.int64_t(step.Index), position: C.int64_t(step.Position), rows: C.int64_t(step.Valid),
		next_epoch: C.int64_t(step.After.Epoch), next_position: C.int64_t(step.After.Position),
	}, bytesOf(state), C.size_t(len(state)))
}

// Dst implements batch.Memory.
func (m *memory) Dst(block int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(m.data, m.pool.offsets[block])), m.pool.sizes[block])
}

// Commit implements batch.Memory.
func (m *memory) Commit(context.Context) error { return nil }

// Free implements batch.Memory.
func (m *memory) Free() { C.mfi_pool_put(m.slot) }
