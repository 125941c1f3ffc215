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
	inner := 1 // rows per step of dimension d
	d := len(batch) - 1
	for ; d > 0 && part[d] == [2]int{0, batch[d]}; d-- {
		inner *= batch[d]
	}
	return appendRuns(rows, batch[:d], part, 0, [2]int{part[d][0] * inner, part[d][1] * inner}, batch[d]*inner)
}

// appendRuns appends run once for every coordinate of the outer dimensions:
// size is the number of rows per step of the last outer dimension.
func appendRuns(rows [][2]int, outer []int, part sharding.Index, base int, run [2]int, size int) [][2]int {
	if len(outer) == 0 {
		return append(rows, [2]int{base + run[0], base + run[1]})
	}
	stride := size
	for _, n := range outer[1:] {
		stride *= n
	}
	for c := part[0][0]; c < part[0][1]; c++ {
		rows = appendRuns(rows, outer[1:], part[1:], base+c*stride, run, size)
	}
	return rows
}

// merge sorts ranges and joins those that touch or overlap. It reuses rows.
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
		if i == 0 || stops[i-1] < start { // all ranges before have ended
			merged = append(merged, [2]int{start, stops[i]})
		} else {
			merged[len(merged)-1][1] = stops[i]
		}
	}
	return merged
}
