package certificate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Processes is a set of process numbers, as ascending [start, stop) ranges that do
// not touch.
type Processes [][2]int64

// ProcessesOf makes a set of numbers, which may be in any order.
func ProcessesOf(numbers []int) Processes {
	var p Processes
	for _, n := range slices.Sorted(slices.Values(numbers)) {
		p = p.push([2]int64{int64(n), int64(n) + 1})
	}
	return p
}

// push appends a range, or joins it with the last one. It must not start before the
// last one.
func (p Processes) push(r [2]int64) Processes {
	if n := len(p); n > 0 && r[0] <= p[n-1][1] {
		p[n-1][1] = max(p[n-1][1], r[1])
		return p
	}
	return append(p, r)
}

// plus returns the numbers that are in either of two sets.
func (p Processes) plus(o Processes) (sum Processes) {
	all := slices.Concat(p, o)
	slices.SortFunc(all, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	for _, r := range all {
		sum = sum.push(r)
	}
	return sum
}

// common returns the numbers that are in both of two sets.
func (p Processes) common(o Processes) (both Processes) {
	for len(p) > 0 && len(o) > 0 {
		if r := [2]int64{max(p[0][0], o[0][0]), min(p[0][1], o[0][1])}; r[0] < r[1] {
			both = append(both, r)
		}
		if p[0][1] < o[0][1] {
			p = p[1:]
		} else {
			o = o[1:]
		}
	}
	return both
}

// without returns the numbers that are not in another set.
func (p Processes) without(o Processes) (rest Processes) {
	for _, r := range p {
		for len(o) > 0 && o[0][1] <= r[0] {
			o = o[1:]
		}
		for i := 0; i < len(o) && o[i][0] < r[1]; i++ {
			if r[0] < o[i][0] {
				rest = append(rest, [2]int64{r[0], o[i][0]})
			}
			r[0] = o[i][1]
		}
		if r[0] < r[1] {
			rest = append(rest, r)
		}
	}
	return rest
}

func (p Processes) count() (n int64) {
	for _, r := range p {
		n += r[1] - r[0]
	}
	return n
}

func (p Processes) equal(o Processes) bool { return slices.Equal(p, o) }

func (p Processes) compare(o Processes) int {
	return slices.CompareFunc(p, o, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
}

// valid reports whether the ranges are in canonical form and within bounds.
func (p Processes) valid() bool {
	for i, r := range p {
		if r[0] < 0 || r[0] >= r[1] || r[1] > maxCount || (i > 0 && r[0] <= p[i-1][1]) {
			return false
		}
	}
	return true
}

// String lists the first ranges, as "process 3" or "processes 0 to 3, 7".
func (p Processes) String() string {
	if p.count() == 1 {
		return fmt.Sprintf("process %d", p[0][0])
	}
	var words []string
	for _, r := range p[:min(len(p), shown)] {
		word := fmt.Sprint(r[0])
		if r[1]-r[0] > 1 {
			word = fmt.Sprintf("%d to %d", r[0], r[1]-1)
		}
		words = append(words, word)
	}
	if len(p) > shown {
		words = append(words, "and others")
	}
	return "processes " + strings.Join(words, ", ")
}
