package loader

import (
	"sort"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// rows are the rows of the global batch that a process needs, numbered anew
// from 0 without gaps: that is the order of a gather's record list.
type rows struct {
	ranges [][2]int // of the global batch: sorted, apart from each other
	first  []int    // number in the list of each range's first row
	count  int
}

func rowsOf(ranges [][2]int) rows {
	r := rows{ranges: ranges, first: make([]int, len(ranges))}
	for i, x := range ranges {
		r.first[i] = r.count
		r.count += x[1] - x[0]
	}
	return r
}

// number gives the place in the list of a row of the global batch, which must
// be one of them.
func (r rows) number(row int) int {
	i := sort.Search(len(r.ranges), func(i int) bool { return row < r.ranges[i][1] })
	return r.first[i] + row - r.ranges[i][0]
}

// below counts the rows before row n of the global batch.
func (r rows) below(n int) int64 {
	sum := 0
	for _, x := range r.ranges {
		sum += max(0, min(x[1], n)-x[0])
	}
	return int64(sum)
}

// runs lists where in the list the rows of a part of the batch stand, in the C
// order of that part. With one batch dimension that is one run; with several,
// a part of an inner dimension makes the rows jump.
func (r rows) runs(shape []int, part sharding.Index) [][2]int {
	d, inner := len(shape)-1, 1
	for ; d > 0 && part[d] == [2]int{0, shape[d]}; d-- {
		inner *= shape[d]
	}
	size := (part[d][1] - part[d][0]) * inner
	var list [][2]int
	at := make([]int, d) // coordinate in the outer dimensions
	for i := range at {
		at[i] = part[i][0]
	}
	for {
		row := 0
		for i, c := range at {
			row = row*shape[i] + c
		}
		n := r.number((row*shape[d] + part[d][0]) * inner)
		list = appendRun(list, [2]int{n, n + size})
		if !advance(at, part) {
			return list
		}
	}
}

// countRuns gives an upper bound of the number of runs.
func countRuns(shape []int, part sharding.Index) int64 {
	d, n := len(shape)-1, int64(1)
	for ; d > 0 && part[d] == [2]int{0, shape[d]}; d-- {
	}
	for _, r := range part[:d] {
		n *= int64(r[1] - r[0])
	}
	return n
}

// advance goes to the next coordinate in C order; false after the last.
func advance(at []int, part sharding.Index) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < part[i][1] {
			return true
		}
		at[i] = part[i][0]
	}
	return false
}

// appendRun adds a run, or makes the last one longer where it goes on.
func appendRun(list [][2]int, run [2]int) [][2]int {
	if last := len(list) - 1; last >= 0 && list[last][1] == run[0] {
		list[last][1] = run[1]
		return list
	}
	return append(list, run)
}
