package diagnosis

import (
	"fmt"
	"strconv"

	"github.com/meshfeed/meshfeed/internal/wording"
)

// doing is the subject of the sentence about a bound.
var doing = map[Bound]string{
	Step:            "Your step",
	Synchronization: "A forced synchronization",
	HandOver:        "The hand-over of batches",
	Gather:          "Gathering rows",
	Decode:          "Decompressing",
	Storage:         "Reading the files",
	Map:             "Calling the functions of views",
	Process:         "Waiting for other processes",
}

func (l *loop) sentences(v verdict) []string {
	sentences := l.explain(v)
	if l.Bad > 0 {
		sentences = append(sentences, wording.Count(l.Bad, "record has rows", "records have rows")+" of zeros, because they cannot be computed.")
	}
	return sentences
}

// explain says what bounds the loop, and what to do.
func (l *loop) explain(v verdict) []string {
	if v.bound == Unknown {
		last := "Ask again later."
		if l.Batches == 0 {
			last = "Ask after a loop over the loader; passes of one_epoch are not measured."
		}
		return []string{
			"After " + wording.Count(l.Batches, "batch", "batches") + " beside the first two there is no verdict yet.",
			fmt.Sprintf("It needs %d.", MinBatches),
			last,
		}
	}
	first := fmt.Sprintf("In %s the loop waited for data for %s of the time: %s of %s a batch.",
		wording.Count(l.Batches, "batch", "batches"), Percent(l.waited()), Duration(l.wait+l.peers+l.handOver), Duration(l.wall))
	would := "would be "
	if v.bound == Synchronization {
		would = "could be up to " // if the thread and the devices do not share the CPUs
	}
	subject, spent := doing[v.bound], Duration(v.time)
	if l.Dropped && v.bound == HandOver {
		subject = "Passing batches between threads"
	}
	if v.shared {
		spent, would = spent+" of processor time", "could be up to "
	}
	second := fmt.Sprintf("%s bounds it, with %s a batch; without it the loop %s%s as fast.", subject, spent, would, times(v.faster))
	return []string{first, second, v.advice}
}

// Percent writes a share: 0.3 %, 42 %.
func Percent(share float64) string {
	if p := 100 * share; p >= 9.95 || p == 0 {
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
}

// times writes a factor: 1.6 times, 14 times.
func times(factor float64) string {
	if factor >= 9.95 {
		return wording.Thousands(int64(factor+0.5)) + " times"
	}
	return strconv.FormatFloat(factor, 'f', 1, 64) + " times"
}

// Duration writes seconds with two digits or more: 840 ns, 3.1 ms, 12 s.
func Duration(seconds float64) string {
	value, unit := seconds*1e9, 0
	units := []string{"ns", "µs", "ms", "s"}
	for value >= 999.5 && unit < len(units)-1 {
		value /= 1000
		unit++
	}
	digits := 0
	if value < 9.95 && value > 0 && unit > 0 {
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + units[unit]
}
