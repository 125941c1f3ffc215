package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DiagnoseJob returns the report of a job, from the newest measurements of its processes.
// Silent are the processes that published none.
//
// In a job, a step usually waits for all processes. So if one process waits for data and
// most others do not, its input is what bounds the job. If most others wait for one
// process before their batches, its step does.
func DiagnoseJob(all []Measurements, silent []int) *Report {
	all = slices.SortedFunc(slices.Values(all), func(a, b Measurements) int { return cmp.Compare(a.Process, b.Process) })
	if len(all) == 0 {
		all = []Measurements{{}}
	}
	reports, rows := make([]*Report, len(all)), make([]Row, len(all))
	for i, m := range all {
		r := Diagnose(m)
		reports[i], rows[i] = r, Row{m.Process, m.Batches, r.Waited, r.Bound, m.Age}
	}
	most, limit := latest(reports)
	r := reports[most]
	switch {
	case limit > 0:
		m := all[most]
		m.Wall, m.Peers = m.Wall-m.Peers, 0 // what keeps the others waiting is its own
		r = diagnose(m, limit)
		rows[most].Waited, rows[most].Bound = r.Waited, r.Bound
		r.Cause, r.Bound, r.Process = r.Bound, Process, all[most].Process
		r.Sentences[0] = fmt.Sprintf("Process %d is late: %s", r.Process, lowered(r.Sentences[0]))
		r.Sentences[1] += " The other processes wait for it."
	case r.input == Process:
		r.Change = Change{"verify_replicas", `"off"`}
		r.Sentences[2] = `No process is late: they wait for each other to compare replicas, which verify_replicas="off" leaves out.`
	}
	r.Processes, r.Silent = rows, slices.Sorted(slices.Values(silent))
	if len(silent) > 0 {
		r.Sentences = append(r.Sentences, named(r.Silent)+" not published any measurements.")
	}
	return r
}

// latest returns the report that stands for a job: the late process's if there is one,
// else that of the process that waits longest for its input. Limit is 0 if no process is
// late. If one is late because of its input, a small share of the time suffices: the step
// of a process contains the wait for the others.
func latest(reports []*Report) (most int, limit float64) {
	own := func(r *Report) float64 { return r.own }
	ahead := func(r *Report) float64 { return -r.peers }
	most = maximum(reports, own)
	if w := reports[most]; w.own >= little && w.input != Step && w.input != Process && median(reports, most, own) < w.own/2 {
		return most, little
	}
	first := maximum(reports, ahead)
	if others := -median(reports, first, ahead); others >= little && reports[first].peers < others/2 && reports[first].Bound != Unknown {
		return first, much
	}
	return most, 0
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

// median returns the median of a value over the other reports that have a verdict. If
// there are none, it returns the value of the report itself.
func median(reports []*Report, without int, of func(*Report) float64) float64 {
	var others []float64
	for i, r := range reports {
		if i != without && r.Bound != Unknown {
			others = append(others, of(r))
		}
	}
	if len(others) == 0 {
		return of(reports[without])
	}
	slices.Sort(others)
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
