package batch

import (
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/status"
)

// Cursor is a position in the order of epochs: the next batch starts at Position
// of Epoch.
type Cursor struct {
	Epoch, Position int64
}

// Step is the position of a batch in a run.
type Step struct {
	Cursor        // position of its first row
	Index  int64  // within the epoch: Position divided by the batch size, rounded down
	Valid  int64  // rows of the global batch that are records; the rest is padding
	After  Cursor // position of the next batch; a state saved after this batch contains it
	Bad    int64  // records with rows of zeros, because this process cannot compute them; each counts once
}

// Batch is one step's blocks. It has one owner at a time: the caller that got it
// from the loader, until Release frees the memory or Take moves it to another
// owner. Its methods are safe for concurrent use. Bytes that were returned before a
// Release must not be used after it.
type Batch struct {
	blocks []Block
	step   Step
	memory Memory
	size   int64
	count  *Count
	gone   atomic.Bool // released or taken
}

// New returns the batch that owns memory, and counts it. All batches of a loader
// share the blocks, which must not change. Count may be nil.
func New(blocks []Block, memory Memory, step Step, count *Count) *Batch {
	b := &Batch{blocks: blocks, step: step, memory: memory, size: SlabBytes(blocks), count: count}
	count.add(1, b.size)
	return b
}

// Blocks returns the distinct indexes of this process, in the order of
// layout.Process.Blocks. The list is shared and must not be changed.
func (b *Batch) Blocks() []Block { return b.blocks }

// Step returns which step of the run this is.
func (b *Batch) Step() Step { return b.step }

// Bytes returns the Blocks()[i].Bytes bytes of a block, in C order. They must not be
// changed if the memory is shared, and not be used after Release. The error is
// InvalidState if the batch was released or taken, and OutOfRange for another block.
func (b *Batch) Bytes(i int) ([]byte, error) {
	if i < 0 || i >= len(b.blocks) {
		return nil, status.Errorf(status.OutOfRange, "batch", "there is no block %d: the batch has %d", i, len(b.blocks)).
			WithHint("Blocks lists them; they count from 0")
	}
	if b.gone.Load() {
		return nil, status.New(status.InvalidState, "batch", "the batch was released or taken, and its memory belongs to another one").
			WithHint("read a batch before its Release, or copy what is kept")
	}
	return b.memory.Dst(i), nil
}

// Memory returns the memory, which the batch still owns.
func (b *Batch) Memory() Memory { return b.memory }

// Take moves the memory to the caller, which calls its Free once. The batch is then
// like a released one. The error is InvalidState if the batch was released or taken
// before.
func (b *Batch) Take() (Memory, error) {
	if !b.end() {
		return nil, status.New(status.InvalidState, "batch", "the memory of this batch was released or taken before").
			WithHint("a batch has one owner: take it once, and not after Release")
	}
	return b.memory, nil
}

// Release frees the memory, so that a later batch may use it. It does nothing if the
// batch was released or taken before.
func (b *Batch) Release() {
	if b.end() {
		b.memory.Free()
	}
}

// end ends the ownership. It reports false if it ended before.
func (b *Batch) end() bool {
	if !b.gone.CompareAndSwap(false, true) {
		return false
	}
	b.count.add(-1, -b.size)
	return true
}
