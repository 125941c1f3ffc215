package certificate

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// Run is the positions [First, Last) of each of Epochs epochs from Epoch on.
type Run struct {
	Epoch, Epochs int64
	First, Last   int64
}

func (r Run) String() string {
	if r.Epochs == 1 {
		return fmt.Sprintf("[%d, %d) of epoch %d", r.First, r.Last, r.Epoch)
	}
	return fmt.Sprintf("[%d, %d) of epochs %d to %d", r.First, r.Last, r.Epoch, r.Epoch+r.Epochs-1)
}

// maxRuns bounds the pieces of a claim. A run has at most three: the rest of
// an epoch, whole epochs, and the beginning of one.
const maxRuns = 4096

// maxCount bounds rows, positions and epochs: the integers that JSON carries
// exactly.
const maxCount = 1 << 53

// fold joins the last run with the one before it, if it is the same of the
// next epoch.
func fold(runs []Run) []Run {
	n := len(runs)
	if n < 2 {
		return runs
	}
	a, b := &runs[n-2], runs[n-1]
	if a.First != b.First || a.Last != b.Last || a.Epoch+a.Epochs != b.Epoch {
		return runs
	}
	a.Epochs += b.Epochs
	return runs[:n-1]
}

// union gives the canonical form of some runs, which may overlap: epochs that
// follow each other with the same positions stand together, and the positions
// of an epoch are cut into as few runs as possible.
func union(runs []Run) ([]Run, error) {
	var bounds []int64 // of epochs, where something changes
	for _, r := range runs {
		bounds = append(bounds, r.Epoch, r.Epoch+r.Epochs)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var out []Run
	last := 0 // where the runs of the epochs before begin in out
	for i := 1; i < len(bounds); i++ {
		here := between(runs, bounds[i-1], bounds[i])
		if len(out)+len(here) > maxRuns {
			return nil, fail(status.ResourceExhausted, "the positions lie in more than %d separate runs", maxRuns).
				WithHint("add certificates of runs that follow each other first")
		}
		if !extend(out[last:], here) {
			last = len(out)
			out = append(out, here...)
		}
	}
	return out, nil
}

// between gives what runs have in the epochs [from, to), which is the same in
// all of them, as one run for every piece.
func between(runs []Run, from, to int64) (pieces []Run) {
	var all []Run
	for _, r := range runs {
		if r.Epoch <= from && to <= r.Epoch+r.Epochs {
			all = append(all, Run{from, to - from, r.First, r.Last})
		}
	}
	slices.SortFunc(all, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	for _, r := range all {
		if n := len(pieces); n > 0 && r.First <= pieces[n-1].Last {
			pieces[n-1].Last = max(pieces[n-1].Last, r.Last)
			continue
		}
		pieces = append(pieces, r)
	}
	return pieces
}

// extend makes runs longer by the epochs of next, which follow them, if they
// have the same positions.
func extend(runs, next []Run) bool {
	same := func(a, b Run) bool { return a.First == b.First && a.Last == b.Last }
	if len(next) == 0 || !slices.EqualFunc(runs, next, same) {
		return false
	}
	for i := range runs {
		runs[i].Epochs += next[i].Epochs
	}
	return true
}

// positions counts those of some runs; false beyond maxCount.
func positions(runs []Run) (sum int64, ok bool) {
	for _, r := range runs {
		high, low := bits.Mul64(uint64(r.Epochs), uint64(r.Last-r.First))
		if high > 0 || low > maxCount-uint64(sum) {
			return 0, false
		}
		sum += int64(low)
	}
	return sum, true
}
