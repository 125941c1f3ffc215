package diagnosis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// lateness is the evidence that the others of a job wait for a process, or run ahead of it.
type lateness int

const (
	none      lateness = iota
	byInput            // it waits for its input, and most others do not
	byPeers            // most others wait for it before their batches
	byBatches          // it has taken fewer batches, and needs more time for each
	byDevices          // its devices have no work for longer parts of the step
)

// DiagnoseJob returns the report of a job, from the newest measurements of its processes.
// Silent lists the processes that published none.
//
// In a job, a step usually waits for all processes, so that it takes the same time in each.
// If one process waits for data and most others do not, its input bounds the job. If most
// others wait for one process before their batches, its step does. If they wait in
// collectives of the step, their devices have work meanwhile, and only the devices of the
// process with a slow program have none. A slow device has work like all others, so it is
// not found.
func DiagnoseJob(all []Measurements, silent []int) *Report {
	all = slices.SortedFunc(slices.Values(all), func(a, b Measurements) int { return cmp.Compare(a.Process, b.Process) })
	if len(all) == 0 {
		all = []Measurements{{}}
	}
	reports, rows := make([]*Report, len(all)), make([]Row, len(all))
	for i, m := range all {
		reports[i] = diagnose(m, much)
	}
	seen := slices.ContainsFunc(all, func(m Measurements) bool { return m.Samples.Busy > 0 })
	for i, r := range reports {
		rows[i] = r.row(seen)
	}
	most, why := mostLate(reports)
	r := reports[most]
	switch {
	case why != none:
		r = late(reports, most, why)
		rows[most].Waited, rows[most].Bound = r.Waited, r.Cause
	case r.input == Process:
		r.Action, r.Change = SetArgument, Change{"verify_replicas", `"off"`}
		r.Sentences[2] = `No process is late: they wait for each other to compare replicas, which verify_replicas="off" leaves out.`
	case len(all) > 1 && (r.Bound == Step || r.Bound == Synchronization):
		r.Sentences = append(r.Sentences, unseen(reports))
	}
	r.Processes, r.Silent = rows, slices.Sorted(slices.Values(silent))
	if len(silent) > 0 {
		r.Sentences = append(r.Sentences, named(r.Silent)+" not published any measurements.")
	}
	r.addWindows(all[0].Windows) // equal in all processes
	return r
}

// row returns the row of a process. If no process has seen its devices work, idle devices
// mean nothing: the CPU devices of JAX run small computations on the program's own thread.
func (r *Report) row(seen bool) Row {
	l := r.loop
	row := Row{Process: l.Process, Batches: r.Batches, Waited: r.Waited, Step: duration(l.step), Idle: -1, Bound: r.Bound, Age: l.Age}
	if idle, known := l.idle(); known && seen {
		row.Idle = duration(idle)
	}
	return row
}

// mostLate returns the report that stands for a job, with the evidence: the report of the
// late process if one is late, else the report of the process that waits longest for its
// input.
func mostLate(reports []*Report) (most int, why lateness) {
	own := func(r *Report) float64 { return r.loop.own() }
	ahead := func(r *Report) float64 { return -share(r.loop.peers, r.loop.wall) }
	wall := func(r *Report) float64 { return r.loop.wall }
	idle := func(r *Report) float64 { seconds, _ := r.loop.idle(); return seconds }
	most = maximum(reports, own)
	if w := reports[most]; own(w) >= little && w.input != Step && w.input != Process && own(middle(reports, most, own)) < own(w)/2 {
		return most, byInput
	}
	first := maximum(reports, ahead)
	if others := -ahead(middle(reports, first, ahead)); others >= little && -ahead(reports[first]) < others/2 && reports[first].Bound != Unknown {
		return first, byPeers
	}
	slow := maximum(reports, wall)
	if reports[slow].behind(middle(reports, slow, wall)) {
		return slow, byBatches
	}
	idlest := maximum(reports, idle)
	if bound := reports[most].Bound; (bound == Step || bound == Synchronization) && reports[idlest].idles(middle(reports, idlest, idle), len(reports)) {
		return idlest, byDevices
	}
	return most, none
}

// behind reports whether a process takes longer for its batches than another, and would have
// taken fewer even if it had measured until now, and the other had not.
func (r *Report) behind(other *Report) bool {
	if r.Bound == Unknown || other.Bound == Unknown || r.loop.wall < (1+much)*other.loop.wall {
		return false
	}
	return float64(r.Batches)+r.loop.Age.Seconds()/r.loop.wall < float64(other.Batches)
}

// idles reports whether the devices of a process have no work for longer parts of its steps
// than the devices of another of n processes, beyond chance.
//
// The test of two proportions is by Agresti and Caffo, "Simple and effective confidence
// intervals for proportions and differences of proportions result from adding two successes
// and two failures", The American Statistician 54 (2000). The tail of a normal distribution
// beyond z is at most exp(-z²/2)/2, so that the chance to name any of n processes wrongly
// is at most [wrongly].
func (r *Report) idles(other *Report, n int) bool {
	a, knownA := r.loop.idle()
	b, knownB := other.loop.idle()
	if !knownA || !knownB || a-b < little*r.loop.wall {
		return false
	}
	p, q := r.idleness(), other.idleness()
	z := math.Sqrt(2 * math.Log(float64(n)/(2*wrongly)))
	return p.share-q.share > z*math.Sqrt(p.variance+q.variance)
}

// proportion is an estimate, with one success and one failure added.
type proportion struct{ share, variance float64 }

func (r *Report) idleness() proportion {
	s := r.Samples
	n := float64(s.Inside + 2)
	share := float64(s.Inside-s.Busy+1) / n
	return proportion{share, share * (1 - share) / n}
}

// late returns the report on a late process. If it is late because of its input, a small
// share of the time suffices: the step of a process contains the wait for the others.
func late(reports []*Report, most int, why lateness) *Report {
	m, limit := reports[most].loop.Measurements, much
	switch why {
	case byInput:
		limit = little
	case byPeers:
		m.Wall, m.Peers = m.Wall-m.Peers, 0 // what keeps the others waiting is its own
	}
	r := diagnose(m, limit)
	r.Cause, r.Bound, r.Process = r.Bound, Process, m.Process
	r.Sentences[0] = fmt.Sprintf("Process %d is late: %s", r.Process, lowered(r.Sentences[0]))
	switch {
	case why == byDevices:
		idle := func(r *Report) float64 { seconds, _ := r.loop.idle(); return seconds }
		r.compare("The devices of this process have no work for %s of a batch, the devices of the others for %s", idle, middle(reports, most, idle))
	case r.Cause == Step:
		step := func(r *Report) float64 { return r.loop.step }
		r.compare("Its step takes %s a batch, the step of the others %s", step, middle(reports, most, step))
	case why == byBatches:
		r.Sentences[1] += " The other processes are ahead of it."
	default:
		r.Sentences[1] += " The other processes wait for it."
	}
	return r
}

// compare makes the program of a process the reason why it is late: it takes longer in this
// respect than another process.
func (r *Report) compare(format string, of func(*Report) float64, other *Report) {
	mine, theirs := of(r), of(other)
	r.Cause, r.Action, r.Change = Step, CompareProgram, Change{}
	r.Faster = factor(r.loop.wall, max(r.loop.wall-mine+theirs, r.loop.input()))
	r.Sentences[1] = fmt.Sprintf(format, Duration(mine), Duration(theirs)) + "; without the difference the job would be " + times(r.Faster) + " as fast."
	r.Sentences[2] = "Look for work that only its program does, such as printing or saving, or for a slower machine; its input is not late."
}

// unseen returns the sentence on a job without a late process, as far as it is known.
func unseen(reports []*Report) string {
	for _, r := range reports {
		if (r.Samples.Inside < minProbes || r.Samples.Busy == 0) && r.Bound != Unknown {
			return fmt.Sprintf("Whether the processes wait for the program of one of them is not known: that takes %d or more samples of steps, and devices that work in some.", minProbes)
		}
	}
	return "No process stands out by its input or its program. A slower device would not show: the other devices wait for it with work."
}

// maximum returns the report with the largest value.
func maximum(reports []*Report, of func(*Report) float64) (most int) {
	for i, r := range reports {
		if of(r) > of(reports[most]) {
			most = i
		}
	}
	return most
}

// middle returns the report with the median value among the other reports that have a
// verdict. Without one, it returns the report itself.
func middle(reports []*Report, without int, of func(*Report) float64) *Report {
	var others []*Report
	for i, r := range reports {
		if i != without && r.Bound != Unknown {
			others = append(others, r)
		}
	}
	if len(others) == 0 {
		return reports[without]
	}
	slices.SortFunc(others, func(a, b *Report) int { return cmp.Compare(of(a), of(b)) })
	return others[len(others)/2]
}

// named names processes, with the verb have.
func named(processes []int) string {
	if len(processes) == 1 {
		return "Process " + strconv.Itoa(processes[0]) + " has"
	}
	texts := make([]string, len(processes))
	for i, p := range processes {
		texts[i] = strconv.Itoa(p)
	}
	last := len(texts) - 1
	return "Processes " + strings.Join(texts[:last], ", ") + " and " + texts[last] + " have"
}

// lowered returns a sentence with a small first letter.
func lowered(sentence string) string { return strings.ToLower(sentence[:1]) + sentence[1:] }
