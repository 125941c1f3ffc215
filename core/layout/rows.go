package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// runs returns the number of separate row ranges of one part of the batch. Rows are
// numbered in C order, so the number is the product of the sizes of the part before
// the last dimension that is cut.
func runs(batch, tiles []int) int64 {
	last := len(batch) - 1
	for last > 0 && tiles[last] == 1 {
		last--
	}
	n := int64(1)
	for d := range last {
		n *= int64(batch[d] / tiles[d])
	}
	return n
}

// appendRows appends the rows of one part of the batch, as sorted ranges.
func appendRows(rows [][2]int, batch []int, part sharding.Index) [][2]int {
	for start, n := range part.Runs(batch) {
		rows = append(rows, [2]int{start, start + n})
	}
	return rows
}

// merge sorts ranges and joins ranges that touch or overlap. It reuses rows.
func merge(rows [][2]int) [][2]int {
	starts, stops := make([]int, 0, len(rows)), make([]int, 0, len(rows))
	for _, r := range rows {
		if r[0] < r[1] {
			starts, stops = append(starts, r[0]), append(stops, r[1])
		}
	}
	slices.Sort(starts)
	slices.Sort(stops)
	merged := rows[:0]
	for i, start := range starts {
		if i == 0 || stops[i-1] < start { // all ranges that start earlier stop before this start
			merged = append(merged, [2]int{start, stops[i]})
		} else {
			merged[len(merged)-1][1] = stops[i]
		}
	}
	return merged
}
