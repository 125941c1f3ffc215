package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// FirstRows gives the rows of the global batch that process p holds and no
// process with a lower number does, as sorted, merged [start, stop) ranges.
// So every row belongs to one process, whatever the arrays replicate: who
// counts each process's first rows counts every row once.
//
// A process holds a row if it holds it of any array that is read; masks,
// extras and arrays whose rows have no bytes are not. An array whose batch is
// not split makes every process hold all rows, and then the lowest process of
// the mesh has all first rows.
func (l *Layout) FirstRows(p int) [][2]int {
	n, ok := slices.BinarySearch(l.processes, p)
	if !ok || l.costs.walks > maxWalks || !l.costs.known {
		return nil
	}
	cuts := l.firstHolders()
	var rows [][2]int
	for _, c := range cuts {
		rows = c.appendFirst(rows, n)
	}
	rows = merge(rows)
	for _, c := range cuts {
		if len(cuts) > 1 { // one alone has nothing to take away
			rows = c.without(rows, n)
		}
	}
	return rows
}

// firstHolders is one way in which arrays cut the batch, and the number of the
// lowest process that holds each part.
type firstHolders struct {
	sharding.Tiling
	batch []int
	tiles []int
	first []int32
}

func (l *Layout) firstHolders() (list []firstHolders) {
	for _, t := range l.rowCuts(l.delivered, func(a Array) bool { return !slices.Contains(a.RowShape(), 0) }) {
		c := firstHolders{Tiling: t, batch: l.BatchShape(), tiles: t.Tiles(), first: make([]int32, t.Count())}
		ids := t.All()
		for n := len(l.processes) - 1; n >= 0; n-- { // so that the lowest is the last to write
			for _, position := range l.mesh.Owned(n) {
				c.first[ids[position]] = int32(n)
			}
		}
		list = append(list, c)
	}
	return list
}

// appendFirst appends the rows of the parts whose first holder is the n-th
// process.
func (c firstHolders) appendFirst(rows [][2]int, n int) [][2]int {
	part := make(sharding.Index, len(c.batch))
	for tile, first := range c.first {
		if int(first) == n {
			c.Fill(part, tile)
			rows = appendRows(rows, c.batch, part)
		}
	}
	return rows
}

// without takes away the rows that a process before the n-th holds.
func (c firstHolders) without(rows [][2]int, n int) (left [][2]int) {
	run := c.run()
	for _, r := range rows {
		for start := r[0]; start < r[1]; {
			stop := min(r[1], (start/run+1)*run)
			if int(c.first[c.tile(start)]) >= n {
				left = append(left, [2]int{start, stop})
			}
			start = stop
		}
	}
	return merge(left)
}

// run gives the number of rows that follow each other in every part.
func (c firstHolders) run() int {
	d, rows := len(c.batch)-1, 1
	for ; d > 0 && c.tiles[d] == 1; d-- {
		rows *= c.batch[d]
	}
	return rows * c.batch[d] / c.tiles[d]
}

// tile gives the part in which a row lies.
func (c firstHolders) tile(row int) int {
	tile, weight := 0, 1
	for d := len(c.batch) - 1; d >= 0; d-- {
		tile += row % c.batch[d] / (c.batch[d] / c.tiles[d]) * weight
		weight *= c.tiles[d]
		row /= c.batch[d]
	}
	return tile
}
