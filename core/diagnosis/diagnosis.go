// Package diagnosis finds what limits a loop over a loader, from measured times.
//
// A loop takes a batch from the loader, and then runs a step with it. Meanwhile the
// loader builds the next batches. So the slowest of these three limits the loop: the
// step, the hand-over of a batch to the step, or the building of batches.
//
//	before, began := l.Stats(), time.Now() // after the first batches
//	… the loop …
//	r := diagnosis.Diagnose(l.Measured(before, time.Since(began)))
//	fmt.Println(r.Bound, r.Sentences)
//
// The package has no clock and no loader: equal measurements give equal reports.
package diagnosis

import (
	"time"

	"github.com/meshfeed/meshfeed/core/sampler"
)

// Measurements are what one process measured over some batches. The first batches of a
// loop should not be among them: opening files and compiling the step would distort the
// result. Times are sums over the batches. A value that was not measured is 0.
type Measurements struct {
	Process int           // its number in the job
	Batches int64         // delivered
	Age     time.Duration // since the values were published, in a job

	// The times of the loop. The rest of Wall is the step.
	Wall     time.Duration // without pauses between loops
	Wait     time.Duration // the loop waited for a batch that was not ready
	Peers    time.Duration // it waited for other processes to come to the same batch
	HandOver time.Duration // time of the rest of the calls that return a batch

	// The times of the producer. Storage, Decode and Map are parts of Gather, and Gather is a
	// part of Build.
	Build, Gather, Storage, Decode, Map time.Duration
	Stall                               time.Duration // enough batches were ready

	// The processor time of decoding, also ahead and for other loaders; and the time that
	// decodings waited for one of the processors.
	Decoding, Delayed time.Duration
	Processors        int

	Locked bool  // functions of views in Python have waited for the interpreter's lock
	Bad    int64 // records with rows of zeros, because they cannot be computed

	Rows, Bytes int64 // rows and bytes of this process's blocks
	Gathered    int64 // bytes; more than Bytes if whole batches are gathered

	Arrays         int    // arrays in a batch
	Combinable     int    // how many arrays fewer there were if fields of equal type, shape and spec were one
	Devices        int    // devices of this process
	Platform       string // platform of the devices, such as "cpu" or "gpu"; empty without devices
	BatchSize      int64  // rows of a global batch
	Records        int64  // records in the dataset
	Prefetch       int64
	DevicePrefetch int64
	Bounded        bool // whether max_host_bytes leaves no memory for Prefetch batches

	// Dropped reports that the loop does nothing but take batches and drop them, so that there is
	// neither a step nor an array. A report then names members of the layout document.
	Dropped bool

	Windows sampler.Quality // quality of an order that shuffles within windows, else zero

	Samples Samples
}

// Samples describe what the devices did at some steps.
type Samples struct {
	Steps  int // that were sampled
	Idle   int // steps with idle devices when the next batch was asked for
	Dry    int // steps with idle devices when the batch was delivered
	Inside int // steps that were sampled at a random time inside of the step
	Busy   int // steps of Inside with computing devices

	// The time of the steps without a sample inside, and the part of it that their thread ran
	// or waited for a CPU. A sample inside takes the interpreter's lock from the thread.
	Step, CPU time.Duration
}

// Bound is what limits a loop.
type Bound string

// The bounds of a loop.
const (
	Unknown         Bound = "unknown"         // there are too few batches
	Step            Bound = "step"            // the computation, or the program around it
	Synchronization Bound = "synchronization" // the program waits for the devices in every step
	HandOver        Bound = "hand-over"       // making arrays of a batch, or passing it to a thread that drops it
	Gather          Bound = "gather"          // copying rows
	Decode          Bound = "decode"          // decompressing
	Storage         Bound = "storage"         // reading files
	Map             Bound = "map"             // functions of views
	Process         Bound = "process"         // the input of another process
)

// Action is what to do against a bound.
type Action string

// The actions.
const (
	Nothing           Action = "nothing"            // or measure longer, if the bound is Unknown
	SetArgument       Action = "set-argument"       // the one of Change
	CombineFields     Action = "combine-fields"     // write fields of equal type and shape as one
	WriteUncompressed Action = "write-uncompressed" // files
	MoveFiles         Action = "move-files"         // to a faster disk
	QuickenMap        Action = "quicken-map"        // make the function of the view faster, or keep its rows
	ReadResultsLater  Action = "read-results-later" // such as float(loss)
	ReportJob         Action = "report-job"         // call DiagnoseJob, which names the late process
	CompareProgram    Action = "compare-program"    // compare the programs of the late process and of the others
)

// Change is an argument of the loader with the value that removes a bound, or the path of a
// member of the layout document if batches are dropped. Argument is empty if no argument does.
// Value is JSON.
type Change struct{ Argument, Value string }

// Part is a row of the table: a time per batch.
type Part struct {
	Name  string
	Time  time.Duration
	Share float64 // share of the wall time of a batch
	Note  string
}

// Report is the diagnosis of a loop.
type Report struct {
	Batches   int64
	Waited    float64 // share of the wall time that the loop waited for data
	Bound     Bound
	Process   int     // the process with the slow input, if Bound is Process; -1 if it is not known
	Cause     Bound   // bound of that process; empty if it is not known
	Faster    float64 // how many times as fast the loop would be without the bound
	Action    Action
	Change    Change   // argument to set, for Action SetArgument
	Sentences []string // what was measured, what the bound is, what to change; then silent processes, and Windows
	Parts     []Part
	Samples   Samples
	Processes []Row // processes of a job, in ascending order
	Silent    []int // processes of the job that published no measurements
	Windows   sampler.Quality

	input Bound // what costs time beside the step; Bound if nothing does
	loop  *loop
}

// Row is a process of a job. Its times are per batch.
type Row struct {
	Process int
	Batches int64
	Waited  float64
	Step    time.Duration
	Idle    time.Duration // idle time of the devices in a step; -1 if too few steps were sampled
	Bound   Bound
	Age     time.Duration
}
