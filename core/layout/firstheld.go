package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// HeldPart is a block with rows that a process counts in certificates. If several processes
// hold the block, the process with the lowest number counts it.
type HeldPart struct {
	Block int   // number in Process.Blocks
	Part  int64 // which part of its rows the block is, from 0 to Parts-1
}

// Parts returns the number of distinct blocks, over all arrays, that hold a part of one row
// of the global batch. An array counts once, or more often if its rows are cut. Arrays
// without a batch dimension, or with rows of no bytes, do not count.
func (l *Layout) Parts() (parts int64) {
	for i := range l.arrays {
		parts += l.rowParts(i)
	}
	return parts
}

// rowParts returns the number of distinct blocks of an array that hold a part of
// one row.
func (l *Layout) rowParts(array int) int64 {
	a, t := l.arrays[array], l.delivered[array]
	if a.Kind == Static || a.Delivered == nil || slices.Contains(a.RowShape(), 0) {
		return 0
	}
	return int64(t.Count() / t.Leading(a.BatchDims).Count())
}

// FirstHeld returns the blocks of process p that no process with a lower number
// holds. The results of all processes together contain every distinct block of every
// array once. Each row therefore occurs once in each of its Parts. The result is nil if
// p has no devices, an array has errors, or the costs take too long to compute.
func (l *Layout) FirstHeld(p int) (held []HeldPart) {
	n, ok := slices.BinarySearch(l.processes, p)
	if !ok || l.costs.walks > maxWalks || !l.costs.known {
		return nil
	}
	local := l.mesh.Local(p)
	first := map[string][]int32{} // for each tiling: the lowest process that holds each tile
	blocks, parts := 0, int64(0)
	for i, a := range l.arrays {
		if a.Kind == Static {
			continue
		}
		t := l.delivered[i]
		key := tilingKey(t)
		if first[key] == nil {
			first[key] = l.firstHolders(t)
		}
		tiles, _ := l.numbered(t, local)
		seen := map[int]bool{} // with LoadDevice, several blocks have the same tile
		for b, tile := range tiles {
			if rows := l.rowParts(i); rows > 0 && !seen[tile] && int(first[key][tile]) == n {
				held = append(held, HeldPart{Block: blocks + b, Part: parts + int64(tile)%rows})
			}
			seen[tile] = true
		}
		blocks, parts = blocks+len(tiles), parts+l.rowParts(i)
	}
	return held
}

// firstHolders returns for each tile the index of the first process that holds
// it.
func (l *Layout) firstHolders(t sharding.Tiling) []int32 {
	first, ids := make([]int32, t.Count()), t.All()
	for n := len(l.processes) - 1; n >= 0; n-- { // backwards, so the lowest process overwrites the others
		for _, position := range l.mesh.Owned(n) {
			first[ids[position]] = int32(n)
		}
	}
	return first
}
