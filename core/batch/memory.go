// Package batch holds the memory of one step: one contiguous block for every
// distinct index that a process owns. A device then gets its part without another
// copy, whatever axis is partitioned.
//
// An [Allocator] provides a piece of [Memory] for every batch. Package loader fills
// it and wraps it in a [Batch]. A batch has one owner at a time: first the loader,
// then the caller of Next. Release frees the memory, and Take moves it to another
// owner.
//
//	mem, err := allocator.Alloc(blocks)    // 1. a slot for every block, not zeroed
//	copy(mem.Dst(0), …)                    // 2. filled by the gatherer
//	err = mem.Commit(ctx)                  // 3. complete: copies, transfers
//	b := batch.New(blocks, mem, step, n)   // 4. counted as live in n
//	b.Release()                            // 5. freed, and no longer counted
//
// [Heap] is the allocator of Go programs. The C library has one for C memory, and
// package gomlxfeed one for the memory of devices.
package batch

import (
	"context"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// Block is one distinct index of one array in this process.
type Block struct {
	Name    string     // array name
	Array   int        // number of the array in the layout's order
	Type    dtype.Type // as delivered
	Shape   []int      // shape of the shard
	Bytes   int        // contiguous, C order
	Holders []int      // mesh positions of this process's devices that hold it
}

// Allocator provides the memory of batches. It never waits for a release. It is
// safe for concurrent use: the passes of one loader share it.
type Allocator interface {
	// Alloc returns one piece of memory with a destination for every block.
	// The loader calls it once per batch, always with the same blocks.
	Alloc(blocks []Block) (Memory, error)
}

// Counter is an Allocator that counts the memory that was not freed. The loader
// prefers it to its own count, which does not include batches after Batch.Take.
type Counter interface {
	Live() (batches, bytes int64)
}

// Memory is the memory of one batch.
type Memory interface {
	// Dst returns the bytes of a block. They are not zeroed.
	Dst(block int) []byte

	// Commit is called once, after the last byte was written: it may copy to
	// other holders or begin transfers.
	Commit(ctx context.Context) error

	// Free ends the use of the memory. It is called once, on any goroutine.
	Free()
}

// Align is the alignment of every block's slot. JAX on CPU needs it to use the bytes
// without a copy. It is also the size of a cache line.
const Align = 64

// slots places the blocks one after the other in one allocation, the slab. Block i
// begins at offsets[i], a multiple of Align. The slab has size bytes.
func slots(blocks []Block) (offsets []int, size int) {
	offsets = make([]int, len(blocks))
	for i, b := range blocks {
		offsets[i] = size
		size += slot(b.Bytes)
	}
	return offsets, size
}

// SlabBytes returns the size of the slab: one allocation that contains all blocks,
// each aligned to Align.
func SlabBytes(blocks []Block) int64 {
	size := int64(0)
	for _, b := range blocks {
		size += int64(slot(b.Bytes))
	}
	return size
}

// slot returns the bytes of a block, rounded up to a multiple of Align.
func slot(bytes int) int { return (bytes + Align - 1) &^ (Align - 1) }
