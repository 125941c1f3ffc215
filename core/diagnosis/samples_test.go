package diagnosis_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/tests/random"
)

// program is a model of a training program with one device. Times are in milliseconds.
type program struct {
	own    float64 // time of the thread in a step
	device float64 // time of the device, which begins after the first tenth of own
	waits  bool    // whether the thread waits for the device at the end of a step
	busy   float64 // the longest wait for a CPU, for the thread, the device and the probe each
	locked float64 // the share of own that the thread is blocked by a lock
}

// run returns the measurements of some steps with two kinds of samples in turn: some probe
// the device inside of the step, the others measure the thread. The program is slower than its
// device unless it waits, so that the device is idle at the end of a step.
func (p program) run(r *rand.Rand, steps int) diagnosis.Measurements {
	m := diagnosis.Measurements{Batches: int64(steps), Devices: 1, Platform: "gpu", Prefetch: 2}
	span := func(ms float64) time.Duration { return time.Duration(ms * 1e6) }
	for i := range steps {
		queue := func() float64 { return p.busy * r.Float64() }
		begin, thread := 0.1*p.own, p.own+queue()
		end := begin + p.device + queue()
		step, blocked := max(thread, end), p.locked*p.own
		if p.waits {
			step = end + thread - begin
			blocked += end - begin
		}
		m.Wall += span(step)
		m.Samples.Steps++
		m.Samples.Idle++
		m.Samples.Dry++
		if i%2 == 1 {
			m.Samples.Step += span(step)
			m.Samples.CPU += span(step - blocked)
		} else if at := r.Float64()*step + queue(); at < step {
			m.Samples.Inside++
			if begin < at && at < end {
				m.Samples.Busy++
			}
		}
	}
	return m
}

// A busy CPU makes the step and the device slower, and a program that does not wait for the
// device finds it idle. That is never called a synchronization, however short the step is.
func TestBusyMachineIsNoSynchronization(t *testing.T) {
	r := random.New(t)
	for range 1000 {
		own := 0.05 + 10*r.Float64()
		p := program{own: own, device: own * r.Float64(), busy: 5 * r.Float64(), locked: 0.1 * r.Float64()}
		if got := diagnosis.Diagnose(p.run(r, 10+r.IntN(200))); got.Bound == diagnosis.Synchronization {
			t.Fatalf("%+v: %q, samples %+v", p, got.Sentences, got.Samples)
		}
	}
}

// A program that waits for its device in every step is found if a wait costs a third of the
// time or more.
func TestSynchronizationIsFound(t *testing.T) {
	r := random.New(t)
	for range 500 {
		own := 1 + 10*r.Float64()
		p := program{own: own, device: own * (0.6 + r.Float64()), waits: true, busy: 0.05 * own, locked: 0.1 * r.Float64()}
		got := diagnosis.Diagnose(p.run(r, 400))
		if got.Bound != diagnosis.Synchronization || got.Faster > (own+p.device+3*p.busy)/max(own*(1-p.locked), p.device) {
			t.Fatalf("%+v: %s, %.2f times, samples %+v", p, got.Bound, got.Faster, got.Samples)
		}
	}
}

// equal returns processes with devices that have no work for a share of the step. Their
// samples differ by chance.
func equal(r *rand.Rand, n, inside int, idle float64) (all []diagnosis.Measurements) {
	for p := range n {
		m := loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0)
		m.Process, m.Samples = p, diagnosis.Samples{Steps: 2 * inside, Idle: 2 * inside, Dry: 2 * inside, Inside: inside}
		for range inside {
			if r.Float64() >= idle {
				m.Samples.Busy++
			}
		}
		all = append(all, m)
	}
	return all
}

// Processes with equal programs are not named by chance.
func TestEqualPrograms(t *testing.T) {
	r := random.New(t)
	named := 0
	const jobs = 1000
	for range jobs {
		all := equal(r, 2+r.IntN(60), 5+r.IntN(200), r.Float64())
		if diagnosis.DiagnoseJob(all, nil).Bound == diagnosis.Process {
			named++
		}
	}
	if named > 8 { // the mean is at most 1: one wrong name in 1,000 jobs
		t.Errorf("%d of %d jobs", named, jobs)
	}
}

// A process is named if its devices have no work for most of the step, and the other
// devices have work.
func TestSlowProgram(t *testing.T) {
	r := random.New(t)
	for range 500 {
		all := equal(r, 2+r.IntN(6), 100, 0.05)
		late := r.IntN(len(all))
		all[late].Samples = equal(r, 1, 100, 0.75)[0].Samples
		if got := diagnosis.DiagnoseJob(all, nil); got.Bound != diagnosis.Process || got.Process != late || got.Cause != diagnosis.Step || got.Action != diagnosis.CompareProgram {
			t.Fatalf("process %d of %d: %s %d, %q", late, len(all), got.Bound, got.Process, got.Sentences)
		}
	}
	all := job(3)
	for i := range all {
		all[i].Samples = diagnosis.Samples{Steps: 200, Idle: 200, Dry: 200, Inside: 100, Busy: 95}
	}
	all[1].Samples.Busy = 25
	got := diagnosis.DiagnoseJob(all, nil)
	const want = "Process 1 is late: in 100 batches the loop waited for data for 2.0 % of the time: 200 µs of 10 ms a batch.\n" +
		"The devices of this process have no work for 7.4 ms of a batch, the devices of the others for 490 µs; without the difference the job would be 3.2 times as fast.\n" +
		"Look for work that only its program does, such as printing or saving, or for a slower machine; its input is not late."
	if text := strings.Join(got.Sentences, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if row := got.Processes[1]; row.Idle != 7350*time.Microsecond || row.Step != 9800*time.Microsecond {
		t.Errorf("got %+v", row)
	}
}

// If the input bounds the job, programs are not compared.
func TestSlowProgramBesideSlowInput(t *testing.T) {
	all := job(3, 0, 1, 2)
	for i := range all {
		all[i].Samples = diagnosis.Samples{Steps: 200, Idle: 200, Dry: 200, Inside: 100, Busy: 95}
	}
	all[1].Samples.Busy = 25
	if r := diagnosis.DiagnoseJob(all, nil); r.Bound != diagnosis.Storage {
		t.Errorf("got %s: %q", r.Bound, r.Sentences)
	}
}

var factor = regexp.MustCompile(`([0-9.,]+) times as fast`)

// A report says one factor, however often. No random measurements make it panic or give a
// number out of range.
func TestOneFactor(t *testing.T) {
	r := random.New(t)
	for range 5000 {
		m := loop(10*r.Float64(), 5*r.Float64()*r.Float64(), r.Float64(), 12*r.Float64(), 12*r.Float64(), 9*r.Float64(), 9*r.Float64())
		m.Samples, m.Combinable, m.Prefetch = random.One(r, synced, ahead, diagnosis.Samples{}), r.IntN(3), int64(r.IntN(3))
		m.Peers = time.Duration(r.IntN(2)) * time.Duration(r.Int64N(int64(time.Second)))
		other := m
		other.Process, other.Wall, other.Batches = 1, m.Wall/time.Duration(1+r.IntN(3)), 100+r.Int64N(3)*50
		for _, got := range []*diagnosis.Report{diagnosis.Diagnose(m), diagnosis.DiagnoseJob([]diagnosis.Measurements{m, other}, nil)} {
			found := factor.FindAllString(strings.Join(got.Sentences, " "), -1)
			found = slices.Compact(found)
			if len(found) > 1 || got.Faster < 1 || got.Waited < 0 || got.Waited > 1 || (got.Action == diagnosis.SetArgument) != (got.Change != none) {
				t.Fatalf("%+v\n%q\n%+v", m, found, got)
			}
		}
	}
}
