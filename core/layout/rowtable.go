package layout

import (
	"encoding/binary"
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// maxTable bounds the number of row ranges of all processes together. With more ranges, the
// rowTable is left out, but Layout.Process works for every single process.
const maxTable = 1 << 22

// rowTable lists the rows that each process reads from the dataset. Processes with
// equal rows form a group. The mask and the extras do not count, because they are
// computed.
type rowTable struct {
	known  bool       // false if there would be more than maxTable ranges
	group  []int32    // group of the n-th process of the mesh
	ranges [][][2]int // ranges of each group
	sizes  []int32    // processes of each group
}

// rowTiling is one way to partition the rows of the batch.
type rowTiling struct {
	sharding.Tiling
	ids []int32 // the tile of every device
}

// tableRows makes the table of the layout.
func (l *Layout) tableRows() rowTable {
	if l.Loading() == LoadGlobal {
		return l.allRows()
	}
	cuts, ok := l.rowTilings(l.delivered)
	if !ok {
		return rowTable{}
	}
	return l.tableOf(cuts)
}

// tableOf makes the table for arrays with rows partitioned in the given ways.
func (l *Layout) tableOf(cuts []rowTiling) rowTable {
	batch := l.BatchShape()
	t := rowTable{known: true, group: make([]int32, len(l.processes))}
	groups := map[string]int32{}
	var rows [][2]int
	var key []byte
	for n := range t.group {
		rows = merge(l.rowsOf(rows[:0], batch, cuts, n))
		key = rowsKey(key[:0], rows)
		g, ok := groups[string(key)]
		if !ok {
			g = int32(len(t.ranges))
			groups[string(key)] = g
			t.ranges, t.sizes = append(t.ranges, slices.Clone(rows)), append(t.sizes, 0)
		}
		t.group[n] = g
		t.sizes[g]++
	}
	return t
}

// allRows makes the table for LoadGlobal: every process reads all rows, if any
// array has rows to read.
func (l *Layout) allRows() rowTable {
	n := len(l.processes)
	t := rowTable{known: true, group: make([]int32, n), ranges: make([][][2]int, 1), sizes: []int32{int32(n)}}
	if slices.ContainsFunc(l.arrays, func(a Array) bool { return a.Kind == Data }) {
		t.ranges[0] = [][2]int{{0, int(l.BatchSize())}}
	}
	return t
}

// rowTilings returns the different ways that arrays partition the rows, with the
// tile of every device. ok is false if they make more than maxTable ranges.
func (l *Layout) rowTilings(tilings []sharding.Tiling) (cuts []rowTiling, ok bool) {
	total, batch := int64(0), l.BatchShape()
	for _, t := range l.rowCuts(tilings) {
		total += runs(batch, t.Tiles()) * int64(l.mesh.Size())
		if total > maxTable {
			return nil, false
		}
		cuts = append(cuts, rowTiling{Tiling: t, ids: t.All()})
	}
	return cuts, true
}

// rowCuts returns the different ways that the dataset's arrays partition the rows. The
// argument has the tilings of all arrays.
func (l *Layout) rowCuts(tilings []sharding.Tiling) (cuts []sharding.Tiling) {
	for i, a := range l.arrays {
		if a.Kind != Data {
			continue
		}
		t := tilings[i].Leading(a.BatchDims)
		if !slices.ContainsFunc(cuts, func(c sharding.Tiling) bool { return c.Same(t) && slices.Equal(c.Tiles(), t.Tiles()) }) {
			cuts = append(cuts, t)
		}
	}
	return cuts
}

// rowsOf appends the rows that the n-th process needs. Ranges may occur repeatedly.
func (l *Layout) rowsOf(rows [][2]int, batch []int, cuts []rowTiling, n int) [][2]int {
	part := make(sharding.Index, len(batch))
	for _, cut := range cuts {
		last := int32(-1)
		for _, position := range l.mesh.Owned(n) {
			if tile := cut.ids[position]; tile != last { // merge removes the remaining repetitions
				cut.Fill(part, int(tile))
				rows = appendRows(rows, batch, part)
				last = tile
			}
		}
	}
	return rows
}

// rowsKey appends an encoding of the rows, to find equal rows in a map.
func rowsKey(key []byte, rows [][2]int) []byte {
	for _, r := range rows {
		key = binary.AppendUvarint(key, uint64(r[0]))
		key = binary.AppendUvarint(key, uint64(r[1]))
	}
	return key
}
