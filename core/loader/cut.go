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
	from  int // of the filled blocks
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
		if p.blocks[i].Bytes > 0 {
			copyPart(memory.Dst(i), whole.Dst(c.from), c.shape, c.index)
		}
	}
}

// copyPart copies a part of an array in C order to the beginning of dst, and
// returns the rest of dst.
func copyPart(dst, array []byte, shape []int, part sharding.Index) []byte {
	if len(shape) == 0 {
		return dst[copy(dst, array):]
	}
	step := len(array) / shape[0]
	if isWhole(shape[1:], part[1:]) {
		return dst[copy(dst, array[part[0][0]*step:part[0][1]*step]):]
	}
	for i := part[0][0]; i < part[0][1]; i++ {
		dst = copyPart(dst, array[i*step:(i+1)*step], shape[1:], part[1:])
	}
	return dst
}

func isWhole(shape []int, part sharding.Index) bool {
	for d, n := range shape {
		if part[d] != [2]int{0, n} {
			return false
		}
	}
	return true
}
