// Package batch holds the memory of one step: a block for every distinct index
// that a process owns, shard after shard, each contiguous, so that a device's
// part can be handed over without another copy whatever axis is partitioned.
//
// An [Allocator] makes a piece of [Memory] for every batch. Package loader
// fills it and wraps it in a [Batch], which has one owner at a time: first the
// loader, then whoever got it from Next, until Release gives the memory back
// or Take moves it out of Go's hands.
//
//	mem, err := allocator.Alloc(blocks)    // 1. a slot for every block, not zeroed
//	copy(mem.Dst(0), …)                    // 2. filled by the gatherer
//	err = mem.Commit(ctx)                  // 3. complete: copies, transfers
//	b := batch.New(blocks, mem, place, n)  // 4. counted
//	b.Release()                            // 5. Free, and no longer counted
//
// [Heap] is the allocator of pure Go programs. The C library brings one whose
// memory never enters the Go runtime, and GoMLX one whose memory is a device's.
package batch

import (
	"context"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// Block is one distinct index of one array in this process.
type Block struct {
	Array   int        // number of the array in the layout's order
	Type    dtype.Type // as delivered
	Shape   []int      // of the shard
	Bytes   int        // contiguous, C order
	Holders []int      // mesh positions of this process's devices that hold it
}

// Allocator makes the memory of batches. It never waits for a release. It is
// safe for concurrent use: passes of one loader share it.
type Allocator interface {
	// Alloc gives one piece of memory with a destination for every block.
	// The loader calls it once per batch, always with the same blocks.
	Alloc(blocks []Block) (Memory, error)
}

// Counter is an Allocator that counts what it handed out and did not get back,
// whoever owns it. The loader then asks it, rather than its own count, which
// loses sight of what was taken.
type Counter interface {
	Live() (batches, bytes int64)
}

// Memory is the memory of one batch.
type Memory interface {
	// Dst gives the bytes of a block. They are not zeroed.
	Dst(block int) []byte

	// Commit is called once, after the last byte was written: it may copy to
	// other holders or begin transfers.
	Commit(ctx context.Context) error

	// Free gives the memory back. It is called once, from any goroutine.
	Free()
}

// Align is the alignment of every block's slot: what JAX needs on CPU to use
// the bytes where they are, and a cache line.
const Align = 64

// Slots places the blocks one after the other in one slab, each in its own
// slot, so that even a block of one byte begins aligned: offsets[i] is where
// block i begins, a multiple of Align, and size the bytes of the slab.
func Slots(blocks []Block) (offsets []int, size int) {
	offsets = make([]int, len(blocks))
	for i, b := range blocks {
		offsets[i] = size
		size += slot(b.Bytes)
	}
	return offsets, size
}

// SlabBytes gives the size of the slab of all blocks, as Slots does.
func SlabBytes(blocks []Block) int64 {
	size := int64(0)
	for _, b := range blocks {
		size += int64(slot(b.Bytes))
	}
	return size
}

func slot(bytes int) int { return (bytes + Align - 1) &^ (Align - 1) }
