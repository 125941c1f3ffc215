package loader

import (
	"cmp"
	"slices"
	"sort"

	"github.com/meshfeed/meshfeed/core/sharding"
)

// rows is a set of rows of the global batch. A record list holds their records in
// order, without gaps.
type rows struct {
	ranges [][2]int // row ranges of the global batch: sorted, with gaps between them
	first  []int    // index in the list of each range's first row
	count  int
}

// rowsOf returns the rows of ranges, which may overlap and be in any order.
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

// index returns the index in the list of a row, which must be in the set.
func (r rows) index(row int) int {
	i := sort.Search(len(r.ranges), func(i int) bool { return row < r.ranges[i][1] })
	return r.first[i] + row - r.ranges[i][0]
}

// locate returns runs of the list for runs of the global batch. The rows must be in the
// set. Two runs become one if the set has no row between them.
func (r rows) locate(runs [][2]int) [][2]int {
	var list [][2]int
	for _, run := range runs {
		n := r.index(run[0])
		list = appendRun(list, [2]int{n, n + run[1] - run[0]})
	}
	return list
}

// below returns the number of rows before row n of the global batch.
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

// runsOf returns the rows of a part of the batch as runs, in the part's C order.
// With one batch dimension there is one run. With several, a part of an inner
// dimension has a run for each index of the outer ones.
func runsOf(shape []int, part sharding.Index) (runs [][2]int) {
	for start, n := range part.Runs(shape) {
		runs = append(runs, [2]int{start, start + n})
	}
	return runs
}

// countRuns returns an upper bound of the number of runs. d is the last dimension
// that the part does not span. There is one run for each index of the dimensions
// before d.
func countRuns(shape []int, part sharding.Index) int64 {
	d := len(shape) - 1
	for d > 0 && part[d] == [2]int{0, shape[d]} {
		d--
	}
	n := int64(1)
	for _, r := range part[:d] {
		n *= int64(r[1] - r[0])
	}
	return n
}

// appendRun appends a run, or extends the last one if the run continues it.
func appendRun(list [][2]int, run [2]int) [][2]int {
	if last := len(list) - 1; last >= 0 && list[last][1] == run[0] {
		list[last][1] = run[1]
		return list
	}
	return append(list, run)
}
