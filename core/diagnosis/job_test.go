package diagnosis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/diagnosis"
)

// job returns processes that wait for each other in every step. The given ones have a slow
// disk.
func job(n int, slow ...int) (all []diagnosis.Measurements) {
	for p := range n {
		m := loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0)
		if slices.Contains(slow, p) {
			m = loop(10, 9, 0.1, 10, 9.8, 9, 0.1)
		}
		m.Process, m.Age = p, time.Duration(p)*time.Second
		all = append(all, m)
	}
	slices.Reverse(all)
	return all
}

func TestLateProcess(t *testing.T) {
	r := diagnosis.DiagnoseJob(job(4, 2), nil)
	const want = "Process 2 is late: in 100 batches the loop waited for data for 91 % of the time: 9.1 ms of 10 ms a batch.\n" +
		"Reading the files bounds it, with 9.0 ms a batch; without it the loop would be 10 times as fast. The other processes wait for it.\n" +
		"Copy the files to a faster disk, such as one of this machine: the storage delivers no more."
	if got := strings.Join(r.Sentences, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.Bound != diagnosis.Process || r.Process != 2 || r.Cause != diagnosis.Storage || r.Action != diagnosis.MoveFiles {
		t.Errorf("got %s of process %d by %s, change %v", r.Bound, r.Process, r.Cause, r.Change)
	}
	bounds := []diagnosis.Bound{diagnosis.Step, diagnosis.Step, diagnosis.Storage, diagnosis.Step}
	for i, row := range r.Processes {
		if row.Process != i || row.Bound != bounds[i] || row.Age != time.Duration(i)*time.Second {
			t.Errorf("row %d: %v", i, row)
		}
	}
}

// In a job, a late process is found even if its step takes most of the time: the others
// wait for the difference.
func TestSlightlyLateProcess(t *testing.T) {
	all := job(4)
	all[1] = loop(10, 0.1, 1.2, 0.7, 0.6, 0, 0)
	all[1].Process = 2
	r := diagnosis.DiagnoseJob(all, nil)
	if r.Bound != diagnosis.Process || r.Process != 2 || r.Cause != diagnosis.HandOver || r.Change.Argument != "batch_size" {
		t.Errorf("got %s of process %d by %s, change %v", r.Bound, r.Process, r.Cause, r.Change)
	}
}

// A process is late because of its step even if its hand-over takes as long as in the
// others.
func TestLateStepBesideHandOver(t *testing.T) {
	all := job(4)
	for i := range all {
		all[i].HandOver, all[i].Peers = 60*ms, 500*ms
		if all[i].Process == 1 {
			all[i].Peers = 0
		}
	}
	if r := diagnosis.DiagnoseJob(all, nil); r.Process != 1 || r.Cause != diagnosis.Step {
		t.Errorf("got %s of process %d by %s: %q", r.Bound, r.Process, r.Cause, r.Sentences)
	}
}

// The others wait for the process with a slow step before their batches.
func TestProcessWithSlowStep(t *testing.T) {
	all := job(4)
	for i := range all {
		all[i].Peers = 500 * ms
		if all[i].Process == 1 {
			all[i].Peers = 60 * ms
		}
	}
	r := diagnosis.DiagnoseJob(all, nil)
	const want = "Process 1 is late: in 100 batches the loop waited for data for 2.1 % of the time: 200 µs of 9.4 ms a batch.\n" +
		"Its step takes 9.2 ms a batch, the step of the others 4.8 ms; without the difference the job would be 1.9 times as fast.\n" +
		"Look for work that only its program does, such as printing or saving, or for a slower machine; its input is not late."
	if got := strings.Join(r.Sentences, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.Bound != diagnosis.Process || r.Process != 1 || r.Cause != diagnosis.Step || r.Action != diagnosis.CompareProgram || r.Processes[1].Bound != diagnosis.Step {
		t.Errorf("got %s of process %d by %s, %s, %v", r.Bound, r.Process, r.Cause, r.Action, r.Processes)
	}
	if bound := r.Processes[0].Bound; bound != diagnosis.Process {
		t.Errorf("process 0 has the bound %s", bound)
	}
}

// A process is behind if its batches take longer and it has taken fewer of them. If its
// measurements are old, it may have taken as many since.
func TestProcessBehind(t *testing.T) {
	all := job(4)
	all[3] = loop(41, 0.1, 0.1, 0.7, 0.6, 0, 0) // process 0
	all[3].Batches, all[3].Wall = 50, all[3].Wall/2
	r := diagnosis.DiagnoseJob(all, nil)
	const want = "Its step takes 41 ms a batch, the step of the others 9.8 ms; without the difference the job would be 4.0 times as fast."
	if r.Bound != diagnosis.Process || r.Process != 0 || r.Cause != diagnosis.Step || r.Sentences[1] != want {
		t.Errorf("got %s of process %d by %s: %q", r.Bound, r.Process, r.Cause, r.Sentences)
	}
	all[3].Age = 3 * time.Second
	if r := diagnosis.DiagnoseJob(all, nil); r.Bound != diagnosis.Step || r.Process != -1 {
		t.Errorf("old measurements: got %s of process %d: %q", r.Bound, r.Process, r.Sentences)
	}
	all[3].Age, all[3].Wait, all[3].Build, all[3].Gather, all[3].Storage = 0, all[3].Wall*9/10, all[3].Wall, all[3].Wall, all[3].Wall
	for i := range 3 {
		all[i].Wait, all[i].Build, all[i].Gather, all[i].Storage = 600*ms, 1000*ms, 990*ms, 900*ms
	}
	if r := diagnosis.DiagnoseJob(all, nil); r.Cause != diagnosis.Storage || !strings.HasSuffix(r.Sentences[1], " The other processes are ahead of it.") {
		t.Errorf("a slow disk: got %s of process %d by %s: %q", r.Bound, r.Process, r.Cause, r.Sentences)
	}
}

// If all processes wait for each other, none of them is late.
func TestAllWaitForEachOther(t *testing.T) {
	all := job(4)
	for i := range all {
		all[i].Peers = 500 * ms
	}
	r := diagnosis.DiagnoseJob(all, nil)
	const want = `No process is late: they wait for each other to compare replicas, which verify_replicas="off" leaves out.`
	if r.Bound != diagnosis.Process || r.Process != -1 || r.Change.Argument != "verify_replicas" || r.Sentences[2] != want {
		t.Errorf("got %s of process %d, change %v, %q", r.Bound, r.Process, r.Change, r.Sentences)
	}
}

// If all processes wait, none of them is late. If none waits, none is late either.
func TestNoLateProcess(t *testing.T) {
	for n, want := range map[int]diagnosis.Bound{0: diagnosis.Step, 4: diagnosis.Storage} {
		var slow []int
		for p := range n {
			slow = append(slow, p)
		}
		if r := diagnosis.DiagnoseJob(job(4, slow...), nil); r.Bound != want || r.Cause != "" {
			t.Errorf("%d slow processes of 4: %s, %s", n, r.Bound, r.Cause)
		}
	}
}

// If no process is late, the report says what would not show.
func TestUnseenProgram(t *testing.T) {
	const unknown = "Whether the processes wait for the program of one of them is not known: that takes 20 or more samples of steps, and devices that work in some."
	for _, c := range []struct {
		inside, busy int
		idle         time.Duration
		want         string
	}{
		{0, 0, -1, unknown},
		{20, 0, -1, unknown},
		{20, 20, 0, "No process stands out by its input or its program. A slower device would not show: the other devices wait for it with work."},
	} {
		all := job(3)
		for i := range all {
			all[i].Samples = diagnosis.Samples{Steps: 2 * c.inside, Inside: c.inside, Busy: c.busy}
		}
		if r := diagnosis.DiagnoseJob(all, nil); r.Sentences[3] != c.want || r.Bound != diagnosis.Step || r.Processes[0].Idle != c.idle {
			t.Errorf("%+v: %s, %q, %+v", c, r.Bound, r.Sentences, r.Processes[0])
		}
	}
	if r := diagnosis.DiagnoseJob(job(1), nil); len(r.Sentences) != 3 {
		t.Errorf("one process: %q", r.Sentences)
	}
}

func TestSilentProcesses(t *testing.T) {
	for silent, want := range map[string][]int{
		"Process 5 has not published any measurements.":             {5},
		"Processes 1, 3 and 5 have not published any measurements.": {5, 1, 3},
	} {
		if r := diagnosis.DiagnoseJob(job(1), want); r.Sentences[len(r.Sentences)-1] != silent || !slices.IsSorted(r.Silent) {
			t.Errorf("got %q, want %q", r.Sentences, silent)
		}
	}
	if r := diagnosis.DiagnoseJob(nil, []int{0}); r.Bound != diagnosis.Unknown {
		t.Errorf("got %v", r)
	}
}
