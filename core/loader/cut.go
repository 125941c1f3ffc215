package loader

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// cut is the part of a whole array that a block is. With layout.LoadGlobal, every
// batch is gathered whole, into memory that is reused, and the blocks of the
// process are copied from there.
type cut struct {
	from  int // index in plan.filled
	shape []int
	index sharding.Index
}

// addCuts plans the blocks of a process as parts of the filled arrays.
func (p *planner) addCuts(mine layout.Process) {
	p.blocks, p.staged = nil, batch.SlabBytes(p.filled)
	for _, b := range mine.Blocks {
		a := p.lay.Arrays()[b.Array]
		from := slices.IndexFunc(mine.Whole, func(w layout.Block) bool { return w.Array == b.Array })
		p.blocks = append(p.blocks, memoryOf(a, b))
		p.cuts = append(p.cuts, cut{from: from, shape: a.Shape, index: b.Index})
	}
}

// copyBlocks copies the blocks from a whole batch. It does nothing if blocks are
// filled directly.
func (p *plan) copyBlocks(memory, whole batch.Memory) {
	for i, c := range p.cuts {
		dst, array, size := memory.Dst(i), whole.Dst(c.from), p.blocks[i].Type.Size()
		for start, n := range c.index.Runs(c.shape) {
			dst = dst[copy(dst, array[start*size:][:n*size]):]
		}
	}
}
