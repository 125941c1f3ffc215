package batch

import (
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/status"
)

// Cursor is a place in the order of epochs: the next batch starts at Position
// of Epoch.
type Cursor struct {
	Epoch, Position int64
}

// Place says which batch of a run a batch is.
type Place struct {
	Cursor        // where its first row stands
	Step   int64  // Position / batch size: the index within the epoch, for display
	Valid  int64  // rows of the global batch that are records; the rest is padding
	After  Cursor // where the next batch starts: what a state saved after this batch says
}

// Batch is one step's blocks. It has one owner at a time: whoever got it from
// the loader, until Release gives the memory back or Take moves it elsewhere.
// Its methods are safe for concurrent use, but bytes that were fetched before
// a Release must not be touched after it.
type Batch struct {
	blocks []Block
	place  Place
	memory Memory
	size   int64
	count  *Count
	gone   atomic.Bool // released or taken
}

// New makes the batch that owns memory, and counts it. The blocks are shared
// by all batches of a loader and must not change. Count may be nil.
func New(blocks []Block, memory Memory, place Place, count *Count) *Batch {
	b := &Batch{blocks: blocks, place: place, memory: memory, size: SlabBytes(blocks), count: count}
	count.add(1, b.size)
	return b
}

// Blocks lists the distinct indexes of this process, in the order of
// layout.Process.Blocks. The list is shared and must not be changed.
func (b *Batch) Blocks() []Block { return b.blocks }

// Place says which batch of the run this is.
func (b *Batch) Place() Place { return b.place }

// Bytes gives the bytes of a block, in C order: Blocks()[i].Bytes of them. It
// gives nil for a batch that was released or taken. They must not be changed
// where others may share the memory, and not be touched after Release.
func (b *Batch) Bytes(i int) []byte {
	if b.gone.Load() {
		return nil
	}
	return b.memory.Dst(i)
}

// Memory gives the memory, which stays the batch's.
func (b *Batch) Memory() Memory { return b.memory }

// Take moves the memory out of the batch: from now on the caller owns it and
// calls its Free once. The batch is then as good as released. The error is
// InvalidState where it was released or taken before.
func (b *Batch) Take() (Memory, error) {
	if !b.leave() {
		return nil, status.New(status.InvalidState, "batch", "the memory of this batch was released or taken before").
			WithHint("a batch has one owner: take it once, and not after Release")
	}
	return b.memory, nil
}

// Release gives the memory back, so that a later batch may use it. Releasing
// a batch again, or one that was taken, does nothing.
func (b *Batch) Release() {
	if b.leave() {
		b.memory.Free()
	}
}

// leave ends the ownership; it says false if it had ended before.
func (b *Batch) leave() bool {
	if !b.gone.CompareAndSwap(false, true) {
		return false
	}
	b.count.add(-1, -b.size)
	return true
}
