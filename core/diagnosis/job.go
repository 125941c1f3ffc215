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
// most others do not, its input is what bounds the job.
func DiagnoseJob(all []Measurements, silent []int) *Report {
	all = slices.SortedFunc(slices.Values(all), func(a, b Measurements) int { return cmp.Compare(a.Process, b.Process) })
	if len(all) == 0 {
		all = []Measurements{{}}
	}
	reports := make([]*Report, len(all))
	worst := 0
	for i, m := range all {
		reports[i] = Diagnose(m)
		if reports[i].Waited > reports[worst].Waited {
			worst = i
		}
	}
	r := reports[worst]
	if late := all[worst].Process; len(all) > 1 && isLate(reports, worst) {
		r.Cause, r.Bound, r.Process = r.Bound, Process, late
		r.Sentences[0] = fmt.Sprintf("Process %d is late: %s", late, lowered(r.Sentences[0]))
		r.Sentences[1] += " The other processes wait for it in their steps."
	}
	for i, m := range all {
		row := reports[i]
		bound := row.Bound
		if bound == Process {
			bound = row.Cause
		}
		r.Processes = append(r.Processes, Row{m.Process, m.Batches, row.Waited, bound, m.Age})
	}
	r.Silent = slices.Sorted(slices.Values(silent))
	if n := len(r.Silent); n > 0 {
		r.Sentences = append(r.Sentences, named(r.Silent)+" not published any measurements.")
	}
	return r
}

// isLate reports whether a process waits for data, and most of the others wait less than
// half as long.
func isLate(reports []*Report, worst int) bool {
	var others []float64
	for i, r := range reports {
		if i != worst && r.Bound != Unknown {
			others = append(others, r.Waited)
		}
	}
	slices.Sort(others)
	w := reports[worst]
	known := w.Bound != Unknown && w.Bound != Step && w.Bound != Synchronization
	return known && len(others) > 0 && others[len(others)/2] < w.Waited/2
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
