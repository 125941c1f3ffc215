package diagnosis

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// MinBatches is the number of batches that a verdict needs.
const MinBatches = 5

const (
	little      = 0.05 // a share of the wall time that is not worth a change
	much        = 0.2  // a share of the wall time above which a loop is bound by its input, as in TensorFlow's profiler
	minSteps    = 10   // steps of an epoch, with a recommended batch size
	minSamples  = 5    // that a verdict about the devices needs
	mostly      = 0.8  // a share of samples
	some        = 0.2  // a share of samples that is more than chance
	maxFactor   = 1e6  // the largest factor of a report
	maxPrefetch = 64   // the largest prefetch that a report recommends
	smallRow    = 512  // bytes of a row, which is located in about the time of its copy
	wasteful    = 1.5  // bytes gathered for each byte delivered, above which each process should gather its own rows
	reserve     = 0.8  // a producer that needs at most this share of the loop's own time is fast enough on average
	minProbes   = 20   // samples inside of steps, below which a slow program of a job may not be found
	wrongly     = 1e-3 // the chance that samples of equal programs name one of a job's processes
)

// Diagnose returns the report of one process.
func Diagnose(m Measurements) *Report {
	r := diagnose(m, much)
	r.addWindows(m.Windows)
	return r
}

// addWindows adds how well the order shuffles, if it has windows.
func (r *Report) addWindows(q sampler.Quality) {
	if r.Windows = q; q.Blocks > 0 {
		r.Sentences = append(r.Sentences, "The order shuffles in windows: "+q.String()+".")
	}
}

// diagnose takes the share of the wall time above which the input is the bound, even if a
// faster step would gain more.
func diagnose(m Measurements, limit float64) *Report {
	l := newLoop(m)
	r := &Report{Batches: m.Batches, Waited: l.waited(), Parts: l.parts(), Samples: m.Samples, Process: -1}
	v := l.verdict(limit)
	r.Bound, r.Faster, r.input, r.loop = v.bound, v.faster, cmp.Or(v.input, v.bound), l
	r.Action, r.Change = v.action, v.change
	r.Sentences = l.sentences(v)
	return r
}

// loop holds the times of a batch, in seconds.
type loop struct {
	Measurements
	wall, wait, peers, handOver, step     float64
	build, gather, storage, decode, other float64
	mapping                               float64 // in functions of views
	decoding                              float64 // processor time
	passing                               float64 // the part of wait while a batch was ready, if batches are dropped
}

func newLoop(m Measurements) *loop {
	l := &loop{Measurements: m}
	n := float64(max(m.Batches, 1))
	per := func(d time.Duration) float64 { return max(d.Seconds(), 0) / n }
	l.wall = per(m.Wall)
	l.wait = min(per(m.Wait), l.wall)
	l.peers = min(per(m.Peers), l.wall-l.wait)
	l.handOver = min(per(m.HandOver), l.wall-l.wait-l.peers)
	if m.Dropped {
		l.passing = l.wall - l.wait
		l.wait, l.peers, l.handOver = l.wall, 0, 0
	}
	l.step = l.wall - l.wait - l.peers - l.handOver
	l.build = per(m.Build)
	gather := min(per(m.Gather), l.build)
	l.storage = min(per(m.Storage), gather)
	l.decode = min(per(m.Decode), gather-l.storage)
	l.mapping = min(per(m.Map), gather-l.storage-l.decode)
	l.gather = gather - l.storage - l.decode - l.mapping
	l.other = l.build - gather
	l.decoding = per(m.Decoding)
	return l
}

func duration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

func (l *loop) waited() float64 { return share(l.wait+l.peers+l.handOver, l.wall) }

// own returns the share of the time that the loop waited for its own input.
func (l *loop) own() float64 { return share(l.wait+l.handOver, l.wall) }

// idle returns the idle time of the devices in a step, or false if too few steps were
// sampled.
func (l *loop) idle() (seconds float64, known bool) {
	return l.step * (1 - share(float64(l.Samples.Busy), float64(l.Samples.Inside))), l.Samples.Inside >= minSamples
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(part/whole, 1)
}

// parts lists the rows of the table. Those before build add up to the wall time. The others
// run beside them, on other threads.
func (l *loop) parts() []Part {
	row := func(name string, seconds float64, note string) Part {
		return Part{name, duration(seconds), share(seconds, l.wall), note}
	}
	list := []Part{
		row("wait", l.wait, "for a batch that was not ready"),
		row("peers", l.peers, "for other processes to come to the same batch"),
		row("hand-over", l.handOver, "making arrays of a batch"),
		row("step", l.step, "your program between two batches"),
		row("build", l.build, "ahead, on other threads:"),
		row("storage", l.storage, "reading files"),
		row("decode", l.decode, "decompressing"),
		row("gather", l.gather, "copying rows"),
		row("other", l.other, "choosing records, memory, checks"),
	}
	if l.mapping > 0 {
		at := slices.IndexFunc(list, func(p Part) bool { return p.Name == "gather" })
		list = slices.Insert(list, at, row("map", l.mapping, "functions of views"))
	}
	if l.decoding > 0 {
		list = append(list, row("decoding", l.decoding, "processor time of decompressing, also further ahead"))
	}
	switch {
	case l.Dropped:
		list = slices.Delete(list, 1, 4)
	case l.peers == 0:
		list = slices.Delete(list, 1, 2)
	}
	return list
}

// verdict is what bounds a loop, and how to remove it.
type verdict struct {
	bound  Bound
	input  Bound   // what costs time beside the step; empty if nothing does
	time   float64 // time of the bound, in seconds per batch
	faster float64
	shared bool // time is processor time that the loop lacks
	remedy
}

// remedy is what to do against a bound.
type remedy struct {
	action Action
	change Change
	advice string // the last sentence
}

// set returns the remedy of an argument, or of a member of the layout document, by its path. The
// advice begins with it.
func (l *loop) set(argument, value, advice string) remedy {
	if l.Dropped {
		argument = paths[argument]
	}
	return remedy{SetArgument, Change{argument, value}, "Set " + argument + "=" + value + advice}
}

// paths has the members of a layout document by the arguments that set them.
var paths = map[string]string{"batch_size": "/batch/size", "prefetch": "/prefetch", "loading": "/loading"}

func nothing(advice string) remedy {
	return remedy{action: Nothing, advice: "Nothing to change" + advice}
}

func (l *loop) verdict(limit float64) verdict {
	if l.Batches < MinBatches || l.wall <= 0 {
		return verdict{bound: Unknown, faster: 1, remedy: remedy{action: Nothing}}
	}
	v := l.slowest(limit)
	if v.bound != Decode && l.oversubscribed(v) {
		return l.oversubscription()
	}
	return v
}

// slowest returns the verdict of the times of the loop and of its producer.
func (l *loop) slowest(limit float64) verdict {
	switch {
	case l.synchronizes():
		return l.synchronization()
	case l.waited() < little || l.busy():
		return l.ownStep()
	}
	v := l.delaying()
	if step := l.ownStep(); l.waited() < limit && step.faster > v.faster {
		step.input, step.remedy = v.bound, v.remedy
		step.advice = doing[v.bound] + " costs " + Percent(1-1/v.faster) + " of the time. " + v.advice
		return step
	}
	return v
}

// oversubscribed reports whether decoding ahead takes processors from the loop: a fifth of their
// time or more, while threads wait for one. Then all other parts take longer, whatever their verdict
// is. But a step on other devices needs no processor.
func (l *loop) oversubscribed(v verdict) bool {
	waits := share(l.Delayed.Seconds(), (l.Decoding + l.Delayed).Seconds())
	return l.taken() >= much*l.wall && waits >= little && (v.bound != Step || l.Platform == "" || l.Platform == "cpu")
}

// taken returns for how long decoding takes all processors.
func (l *loop) taken() float64 { return l.decoding / float64(max(l.Processors, 1)) }

func (l *loop) oversubscription() verdict {
	return verdict{bound: Decode, time: l.decoding, shared: true, faster: factor(l.wall, l.wall-l.taken()), remedy: l.faster(Decode)}
}

// delaying returns the verdict about a loop that waits for data.
func (l *loop) delaying() verdict {
	switch {
	case l.peers > max(l.wait, l.handOver):
		return l.waiting()
	case l.handOver > l.wait:
		if v := l.handing(); v.action != Nothing || share(l.wait, l.wall) < little {
			return v
		}
	}
	return l.building()
}

// busy reports whether the devices had work whenever a batch was delivered. A wait for
// data then costs nothing, because the program runs ahead of its devices.
func (l *loop) busy() bool {
	s := l.Samples
	return s.Steps >= minSamples && float64(s.Dry) < (1-mostly)*float64(s.Steps)
}

// synchronizes reports whether the program waits for its devices in every step: they
// compute while the step runs, and have nothing to do when it ends. A batch that is not
// ready makes the input the bound instead.
//
// Devices may also have nothing to do because the program is slow. Then the devices' work
// and the thread's own overlap, or the thread sleeps for most of the step, so that it would
// gain nothing. On a busy CPU all of them take longer, and devices are found idle at the end
// of every step. But then the thread waits for a CPU, and is not blocked.
func (l *loop) synchronizes() bool {
	s := l.Samples
	if s.Steps < minSamples || s.Inside < minSamples || share(l.wait+l.peers, l.wall) >= little || float64(s.Idle) < mostly*float64(s.Steps) {
		return false
	}
	devices, blocked := l.shares()
	return devices >= some && blocked >= max(some, devices/2) && l.synchronization().faster >= 1+some/2
}

// shares returns the share of the step when the devices have work, and the share when
// the thread neither runs nor waits for a CPU.
func (l *loop) shares() (devices, blocked float64) {
	s := l.Samples
	if s.Step > 0 {
		blocked = 1 - share(s.CPU.Seconds(), s.Step.Seconds())
	}
	return share(float64(s.Busy), float64(s.Inside)), blocked
}

// synchronization returns the verdict about a program that waits for its devices. Without
// the wait, the thread's own work and the devices' work would overlap.
func (l *loop) synchronization() verdict {
	devices, blocked := l.shares()
	wait := blocked * l.step // at most, because the thread may also sleep
	least := max(wait, devices*l.step, l.wall-wait, l.input())
	v := verdict{bound: Synchronization, time: min(wait, devices*l.step), faster: factor(l.wall, least)}
	if l.Platform == "cpu" && l.Devices > 1 {
		v.remedy = nothing(" on several CPU devices, because their steps can wait for each other forever if they overlap. On others, read results such as float(loss) only every hundred steps.")
		return v
	}
	v.remedy = remedy{action: ReadResultsLater, advice: "If the step reads results such as float(loss), read them only every hundred steps, or read the results of the step before: then the devices compute while the program prepares the next step."}
	return v
}

func (l *loop) ownStep() verdict {
	v := verdict{bound: Step, time: l.step, faster: factor(l.wall, l.input())}
	if l.busy() && l.waited() >= little {
		v.remedy = nothing(": the devices had work whenever a batch was delivered.")
		return v
	}
	v.remedy = nothing(": the input alone is " + times(v.faster) + " as fast.")
	return v
}

// waiting returns the verdict about a process that waits for others before a batch.
func (l *loop) waiting() verdict {
	v := verdict{bound: Process, time: l.peers, faster: factor(l.wall, max(l.wall-l.peers, l.build))}
	v.remedy = remedy{action: ReportJob, advice: "Call loader.report(all_processes=True), which names the process that is late."}
	return v
}

// input returns the time of a batch without a step.
func (l *loop) input() float64 { return max(l.build, l.handOver) }

func (l *loop) handing() verdict {
	v := verdict{bound: HandOver, time: l.handOver, faster: factor(l.wall, max(l.wall-l.handOver, l.build))}
	if l.Platform != "" && l.Platform != "cpu" && l.DevicePrefetch == 0 {
		v.remedy = l.set("device_prefetch", "1", ": then a batch is sent to its devices during the step before.")
		return v
	}
	// A hand-over takes about the same time for any number of rows.
	scale := int64(2)
	for scale < 16 && l.handOver > little*float64(scale)*l.step {
		scale *= 2
	}
	size := max(l.BatchSize, 1)
	for scale > 1 && l.Records > 0 && size*scale*minSteps > l.Records {
		scale /= 2
	}
	v.remedy = l.fewer(size, scale)
	return v
}

// fewer returns how to make fewer arrays, or to pass fewer batches.
func (l *loop) fewer(size, scale int64) remedy {
	const rows = ": a hand-over takes the same time for any number of rows."
	if l.Dropped {
		if scale > 1 {
			return l.set("batch_size", strconv.FormatInt(size*scale, 10), ": passing a batch takes the same time for any number of rows.")
		}
		return nothing(": the dataset is too small for larger batches.")
	}
	saved := wording.Count(int64(l.Combinable), "array", "arrays")
	larger := strconv.FormatInt(size*scale, 10)
	switch {
	case scale > 1 && l.Combinable > 0:
		return l.set("batch_size", larger, ", or combine fields of equal type and shape, which saves "+saved+rows)
	case scale > 1:
		return l.set("batch_size", larger, rows)
	case l.Combinable > 0:
		return remedy{action: CombineFields, advice: "Combine fields of equal type and shape, which saves " + saved + ": the time of a hand-over grows with the number of arrays and devices."}
	}
	return nothing(": no arrays can be combined, and the dataset is too small for larger batches.")
}

// building returns the verdict about a loop that waits for batches to be built.
//
// A batch takes about as long as its wait, unless waking the threads takes longer than
// building the batch, because batches are small. Read-ahead hides the waking if the step
// takes longer. Threads then wait for a CPU now and then.
func (l *loop) building() verdict {
	if l.build < l.wait/2 && l.Prefetch > 0 && !l.Bounded {
		if l.step > l.wait {
			late := ": a batch is built in " + Duration(l.build) + ", but some come late. On a busy machine, the threads that build them wait for a CPU."
			return verdict{bound: Gather, time: l.wait, faster: factor(l.wall, l.wall-l.wait), remedy: l.more(late)}
		}
		l.handOver, l.wait = l.handOver+l.wait-l.build, l.build
		return l.handing()
	}
	v := verdict{bound: Gather, time: l.gather + l.other}
	if l.decode > v.time {
		v.bound, v.time = Decode, l.decode
	}
	if l.storage > v.time {
		v.bound, v.time = Storage, l.storage
	}
	if l.mapping > v.time {
		v.bound, v.time = Map, l.mapping
	}
	rest := l.wall - l.wait + l.passing
	if l.Prefetch == 0 || !l.Dropped && l.build < reserve*rest {
		v.faster = factor(l.wall, max(rest, l.build))
		v.remedy = l.ahead()
		return v
	}
	v.faster = factor(l.wall, max(l.build-v.time, rest))
	v.remedy = l.faster(v.bound)
	return v
}

// ahead returns how to read more ahead.
func (l *loop) ahead() remedy {
	switch {
	case l.Bounded:
		return l.set("max_host_bytes", strconv.FormatInt(l.needed(), 10), ": less leaves no memory for batches that are read ahead.")
	case l.Prefetch == 0:
		return l.set("prefetch", "2", ": with 0, a batch is built only when the loop asks for it.")
	}
	return l.more(": on average batches are built faster than they are used, but some take long.")
}

// more returns the remedy to read twice as far ahead.
func (l *loop) more(advice string) remedy {
	return l.set("prefetch", strconv.FormatInt(min(2*l.Prefetch, maxPrefetch), 10), advice)
}

// needed returns the bytes for all batches that are read ahead, and three in use.
func (l *loop) needed() int64 {
	return (l.Prefetch + 3) * (l.Bytes / max(l.Batches, 1))
}

// faster returns how to build batches faster.
func (l *loop) faster(bound Bound) remedy {
	switch {
	case bound == Decode:
		return remedy{action: WriteUncompressed, advice: "Write the files without compression: meshfeed convert FILE… FOLDER."}
	case bound == Map && l.Locked:
		return remedy{action: QuickenMap, advice: "The Python functions of the views wait for each other: they hold the interpreter's lock most of the time. Call large NumPy operations, image decoders or encode_batch of tokenizers for many rows at once, which release it; or compute the rows once, by ds.map(fn, key=…).cache() or python -m meshfeed convert --map; or use free-threaded Python."}
	case bound == Map:
		return remedy{action: QuickenMap, advice: "Make the functions of the views faster, or keep their rows. In Python, functions run beside each other only in code that releases the interpreter's lock, such as large NumPy operations, image decoders and encode_batch of tokenizers: call these for many rows at once. A function without keys needs to run once: ds.map(fn, key=…).cache(). Images are decoded sooner if the files have fewer pixels."}
	case bound == Storage:
		return remedy{action: MoveFiles, advice: "Copy the files to a faster disk, such as one of this machine: the storage delivers no more."}
	case float64(l.Gathered) > wasteful*float64(l.Bytes):
		return l.set("loading", `"process"`, ": now every process gathers rows that it does not keep.")
	case l.Combinable > 0 && l.Bytes < smallRow*l.Rows:
		return remedy{action: CombineFields, advice: "Write columns of equal type and shape as one column of lists: locating a small row takes longer than copying it."}
	case l.other > l.gather:
		return nothing(" but the data: choosing records takes longer than copying their rows, so that fewer and larger rows take less time.")
	}
	rate := wording.Bytes(int64(float64(l.Gathered)/float64(max(l.Batches, 1))/max(l.gather, 1e-9))) + " a second"
	return nothing(" but the data: rows are copied at " + rate + "; smaller rows or narrower types take less time.")
}

// factor returns how many times as fast a loop is that takes less time.
func factor(before, after float64) float64 {
	if after*maxFactor <= before {
		return maxFactor
	}
	return max(before/after, 1)
}
