package loader

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// cut says which part of a whole array a block is. With layout.LoadGlobal a
// batch is gathered whole, into memory that serves one batch after the other,
// and the blocks of the process are copied out of it.
type cut struct {
	from  int // of the filled blocks
	shape []int
	index sharding.Index
}

// cutOut makes the blocks of a process parts of the arrays that are filled.
func (p *planner) cutOut(mine layout.Process) {
	p.blocks, p.staged = nil, batch.SlabBytes(p.filled)
	for _, b := range mine.Blocks {
		a := p.lay.Arrays()[b.Array]
		from := slices.IndexFunc(mine.Whole, func(w layout.Block) bool { return w.Array == b.Array })
		p.blocks = append(p.blocks, memoryOf(a, b))
		p.cuts = append(p.cuts, cut{from: from, shape: a.Shape, index: b.Index})
	}
}

// keep copies the blocks out of a whole batch.
func (p *plan) keep(memory, whole batch.Memory) {
	for i, c := range p.cuts {
		if p.blocks[i].Bytes > 0 {
			copyPart(memory.Dst(i), whole.Dst(c.from), c.shape, c.index)
		}
	}
}

// copyPart copies a part of an array in C order to dst, and gives what is left
// of dst.
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
