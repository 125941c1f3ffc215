// Package batch holds the memory of one step: a block for every distinct index
// that a process owns, shard after shard, each contiguous, so that a device's
// part can be handed over without another copy whatever axis is partitioned.
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

// Allocator makes the memory of batches. It never waits for a release.
type Allocator interface {
	// Alloc gives one piece of memory with a destination for every block.
	// The loader calls it once per batch, always with the same blocks.
	Alloc(blocks []Block) (Memory, error)
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
