package layout

import "github.com/meshfeed/meshfeed/core/sharding"

// Process describes what one process gathers for every batch.
type Process struct {
	Process int
	Blocks  []Block  // delivered: one per distinct index of each array, or one per device with LoadDevice; by array, then by first holder in mesh order
	Rows    [][2]int // rows of the global batch in any block, also of mask and extras: sorted, merged [start, stop) ranges
	Whole   []Block  // with LoadGlobal, gathered in place of Blocks: every array whole, without holders; else nil
}

// ProcessCount returns the number of processes: the highest number of a process
// that owns devices, plus one. It includes processes without devices.
func (l *Layout) ProcessCount() int {
	if len(l.processes) == 0 {
		return 0
	}
	return l.processes[len(l.processes)-1] + 1
}

// Gathered lists the blocks that the process gathers: Whole with LoadGlobal,
// else Blocks.
func (p Process) Gathered() []Block {
	if p.Whole != nil {
		return p.Whole
	}
	return p.Blocks
}

// Block is one distinct index of an array in a process.
type Block struct {
	Array   int            // number in Layout.Arrays
	Index   sharding.Index // a full [start, stop) pair per dimension
	Holders []int          // mesh positions of this process's devices that hold it, in mesh order
}

// Process computes what a process gathers. The result is empty for a process without
// devices in the mesh. It leaves out arrays with Delivered nil. If the blocks up to an
// array are more than MaxBlocks, it lacks this array and all later ones. If the costs take
// too long to compute, it has no arrays. Err reports each of these cases, except a process
// without devices.
func (l *Layout) Process(p int) Process {
	local := l.mesh.Local(p)
	out := Process{Process: p}
	if l.costs.walks > maxWalks {
		return out
	}
	var rows [][2]int
	for i, a := range l.arrays {
		if a.Delivered == nil || a.Kind == Static {
			continue
		}
		blocks := l.blocks(i, local)
		if len(out.Blocks)+len(blocks) > MaxBlocks {
			break
		}
		for _, b := range blocks {
			rows = appendRows(rows, a.Shape[:a.BatchDims], b.Index[:a.BatchDims])
		}
		rows = merge(rows)
		out.Blocks = append(out.Blocks, blocks...)
		if l.Loading() == LoadGlobal && len(blocks) > 0 {
			out.Whole = append(out.Whole, Block{Array: i, Index: whole(a.Shape)})
		}
	}
	out.Rows = rows
	return out
}

// blocks returns the blocks of an array for the devices at the mesh positions local.
func (l *Layout) blocks(array int, local []int) []Block {
	t := l.delivered[array]
	tiles, owner := l.numbered(t, local)
	blocks := make([]Block, len(tiles))
	dims := len(l.arrays[array].Shape)
	indexes := make(sharding.Index, len(tiles)*dims)
	for n, tile := range tiles {
		index := indexes[n*dims : (n+1)*dims : (n+1)*dims]
		t.Fill(index, tile)
		blocks[n] = Block{Array: array, Index: index}
	}
	counts := make([]int, len(tiles))
	for _, n := range owner {
		counts[n]++
	}
	holders := make([]int, len(local))
	for n, count := range counts {
		blocks[n].Holders, holders = holders[:0:count], holders[count:]
	}
	for i, n := range owner {
		blocks[n].Holders = append(blocks[n].Holders, local[i])
	}
	return blocks
}

// numbered numbers the blocks of a process with devices at the mesh positions local. It
// returns the tile of every block, and the block number of every device.
func (l *Layout) numbered(t sharding.Tiling, local []int) (tiles, owner []int) {
	number := make(map[int]int, len(local))
	owner = make([]int, len(local))
	for i, position := range local {
		tile := t.At(position)
		n, ok := number[tile]
		if !ok || l.Loading() == LoadDevice {
			n = len(tiles)
			number[tile] = n
			tiles = append(tiles, tile)
		}
		owner[i] = n
	}
	return tiles, owner
}

// whole returns the index of a whole array.
func whole(shape []int) sharding.Index {
	x := make(sharding.Index, len(shape))
	for d, n := range shape {
		x[d][1] = n
	}
	return x
}
