package loader

import (
	"cmp"
	"slices"
	"sort"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// rows are some rows of the global batch, numbered anew from 0 without gaps:
// that is the order of a record list.
type rows struct {
	ranges [][2]int // of the global batch: sorted, apart from each other
	first  []int    // number in the list of each range's first row
	count  int
}

// rowsOf gives the rows of ranges, which may overlap and come in any order.
func rowsOf(ranges [][2]int) rows {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	r := rows{}
	for _, x := range ranges {
		if last := len(r.ranges) - 1; last >= 0 && x[0] <= r.ranges[last][1] {
			r.ranges[last][1] = max(r.ranges[last][1], x[1])
			continue
		}
		r.ranges = append(r.ranges, x)
	}
	for _, x := range r.ranges {
		r.first = append(r.first, r.count)
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

// locate gives where in the list runs of the global batch stand. A run never
// spans a gap, since all its rows are there; but two may now be one.
func (r rows) locate(runs [][2]int) [][2]int {
	var list [][2]int
	for _, run := range runs {
		n := r.number(run[0])
		list = appendRun(list, [2]int{n, n + run[1] - run[0]})
	}
	return list
}

// below counts the rows before row n of the global batch.
func (r rows) below(n int64) int64 {
	if len(r.ranges) == 0 || int64(r.ranges[len(r.ranges)-1][1]) <= n {
		return int64(r.count)
	}
	sum := int64(0)
	for _, x := range r.ranges {
		sum += max(0, min(int64(x[1]), n)-int64(x[0]))
	}
	return sum
}

// runsOf lists the rows of a part of the batch, in the C order of that part.
// With one batch dimension that is one run; with several, a part of an inner
// dimension makes the rows jump.
func runsOf(shape []int, part sharding.Index) [][2]int {
	d, inner := lastCut(shape, part)
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
		row = (row*shape[d] + part[d][0]) * inner
		list = appendRun(list, [2]int{row, row + size})
		if !advance(at, part) {
			return list
		}
	}
}

// countRuns gives an upper bound of the number of runs.
func countRuns(shape []int, part sharding.Index) int64 {
	d, _ := lastCut(shape, part)
	n := int64(1)
	for _, r := range part[:d] {
		n *= int64(r[1] - r[0])
	}
	return n
}

// lastCut gives the last dimension of which the part is not all, or 0, and the
// rows per step of it.
func lastCut(shape []int, part sharding.Index) (d, inner int) {
	d, inner = len(shape)-1, 1
	for ; d > 0 && part[d] == [2]int{0, shape[d]}; d-- {
		inner *= shape[d]
	}
	return d, inner
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
