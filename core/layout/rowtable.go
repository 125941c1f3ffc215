package layout

import (
	"encoding/binary"
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// maxTable bounds the row ranges that are worked out for all processes
// together. A layout beyond it still answers Process by Process.
const maxTable = 1 << 22

// rowTable says which processes read which rows of the dataset's arrays; mask
// and extras are made, not read. Processes with equal rows form a group.
type rowTable struct {
	known  bool
	group  []int32    // of the n-th process of the mesh
	ranges [][][2]int // of each group
	sizes  []int32    // processes of each group
}

// rowTiling is one way in which arrays cut the batch.
type rowTiling struct {
	sharding.Tiling
	ids []int32 // of every device
}

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

// tableOf gives the table of arrays that are cut in some ways.
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

// allRows says that every process reads all rows, if any array has rows to read.
func (l *Layout) allRows() rowTable {
	n := len(l.processes)
	t := rowTable{known: true, group: make([]int32, n), ranges: make([][][2]int, 1), sizes: []int32{int32(n)}}
	if slices.ContainsFunc(l.arrays, func(a Array) bool { return a.Kind == Data }) {
		t.ranges[0] = [][2]int{{0, int(l.BatchSize())}}
	}
	return t
}

// rowTilings gives the different ways in which arrays cut the batch, and every
// device's part, unless all of them make too many ranges.
func (l *Layout) rowTilings(tilings []sharding.Tiling) (cuts []rowTiling, ok bool) {
	total, batch := int64(0), l.BatchShape()
	for _, t := range l.rowCuts(tilings, func(Array) bool { return true }) {
		total += runs(batch, t.Tiles()) * int64(l.mesh.Size())
		if total > maxTable {
			return nil, false
		}
		cuts = append(cuts, rowTiling{Tiling: t, ids: t.All()})
	}
	return cuts, true
}

// rowCuts gives the different ways in which those of the dataset's arrays that
// count cut the batch; the tilings are those of all arrays.
func (l *Layout) rowCuts(tilings []sharding.Tiling, counts func(Array) bool) (cuts []sharding.Tiling) {
	for i, a := range l.arrays {
		if a.Kind != Data || !counts(a) {
			continue
		}
		t := tilings[i].Leading(a.BatchDims)
		if !slices.ContainsFunc(cuts, func(c sharding.Tiling) bool { return c.Same(t) && slices.Equal(c.Tiles(), t.Tiles()) }) {
			cuts = append(cuts, t)
		}
	}
	return cuts
}

// rowsOf appends the rows that the n-th process needs.
func (l *Layout) rowsOf(rows [][2]int, batch []int, cuts []rowTiling, n int) [][2]int {
	part := make(sharding.Index, len(batch))
	for _, cut := range cuts {
		last := int32(-1)
		for _, position := range l.mesh.Owned(n) {
			if tile := cut.ids[position]; tile != last { // others that repeat are merged away
				cut.Fill(part, int(tile))
				rows = appendRows(rows, batch, part)
				last = tile
			}
		}
	}
	return rows
}

func rowsKey(key []byte, rows [][2]int) []byte {
	for _, r := range rows {
		key = binary.AppendUvarint(key, uint64(r[0]))
		key = binary.AppendUvarint(key, uint64(r[1]))
	}
	return key
}

// of gives the rows of the n-th process.
func (t rowTable) of(n int) [][2]int { return t.ranges[t.group[n]] }

// members lists the processes of every group, or nil where rows are not known.
func (t rowTable) members(processes []int) [][]int {
	if !t.known {
		return nil
	}
	groups := make([][]int, len(t.ranges))
	for n, g := range t.group {
		groups[g] = append(groups[g], processes[n])
	}
	return groups
}
