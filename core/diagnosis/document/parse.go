// Package document reads measurements of loops as JSON. It writes their diagnosis as JSON
// ([Report]) and as a text ([Text]).
//
//	{"meshfeed":1, "processes":[{"batches":400,"wall_ns":4000000000,"wait_ns":2400000000,
//	 "build_ns":4000000000,"gather_ns":3900000000,"decode_ns":3500000000}]}
//
// A key that is left out is 0. Times are sums over the batches.
package document

import (
	"time"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// MaxProcesses is the largest number of processes of a document.
const MaxProcesses = 1 << 17

// Diagnose reads a document, and returns the report of its processes. An error is
// InvalidArgument, with a JSON Pointer in its attribute "path".
func Diagnose(text []byte) (*diagnosis.Report, error) {
	var d job
	if err := form.Measurements.Read(text, d.members()); err != nil {
		return nil, err
	}
	if len(d.processes) == 1 && len(d.silent) == 0 {
		return diagnosis.Diagnose(d.processes[0]), nil
	}
	return diagnosis.DiagnoseJob(d.processes, d.silent), nil
}

// Schema returns the JSON Schema of measurements documents, of draft 2020-12. Every document
// that [Diagnose] accepts is valid by it. Diagnose refuses more than a schema can say, such
// as keys that repeat.
func Schema() string {
	return form.Measurements.Schema("What the processes of a job measured in their loops over a loader. Times are sums over the batches, in nanoseconds. "+
		"A key that is left out is 0. `mf_diagnose` answers with a diagnosis document.", new(job).members(), "")
}

// job is what a document says.
type job struct {
	processes []diagnosis.Measurements
	silent    []int
}

func (d *job) members() []*form.Member {
	return []*form.Member{
		form.Key("processes", form.List(&d.processes, "a list of measurements", MaxProcesses, measurements), "The measurements of each process.").Required(),
		form.Key("silent", form.List(&d.silent, "a list of processes", MaxProcesses, process), "The processes of the job that published no measurements.").Default("[]"),
	}
}

const maxProcess = 1<<31 - 1

func small(to *int, want string) form.Value {
	return form.Defined("number", "", form.Integer(to, want, 0, maxProcess))
}

func process(to *int) form.Value { return small(to, "a process") }
func number(to *int) form.Value  { return small(to, "a number") }
func sampled(to *int) form.Value { return small(to, "a number of samples") }

func count(to *int64) form.Value {
	return form.Defined("count", "", form.Integer(to, "a number", 0, jsontext.MaxInteger))
}

func spent(to *time.Duration) form.Value {
	return form.Defined("time", "", form.Integer(to, "a number of nanoseconds", 0, jsontext.MaxInteger))
}

func measurements(m *diagnosis.Measurements) form.Value {
	return form.Defined("measurements", "What one process measured.", form.Object("measurements",
		form.Key("process", number(&m.Process), "The number of the process in its job."),
		form.Key("batches", count(&m.Batches), "How many batches were measured. The first ones of a loop should not be among them."),
		form.Key("age_ns", spent(&m.Age), "The time since the values were published, in a job."),
		form.Key("wall_ns", spent(&m.Wall), "The time of the loop, without pauses between loops. What the next three do not take of it is the step."),
		form.Key("wait_ns", spent(&m.Wait), "The time in which the loop waited for a batch that was not ready."),
		form.Key("peers_ns", spent(&m.Peers), "The time in which the loop waited for other processes to come to the same batch."),
		form.Key("hand_over_ns", spent(&m.HandOver), "The rest of the calls that return a batch."),
		form.Key("build_ns", spent(&m.Build), "The time in which the producer built batches."),
		form.Key("gather_ns", spent(&m.Gather), "The part of build_ns in which rows were gathered."),
		form.Key("storage_ns", spent(&m.Storage), "The part of gather_ns in which files were read."),
		form.Key("decode_ns", spent(&m.Decode), "The part of gather_ns in which data was decompressed."),
		form.Key("map_ns", spent(&m.Map), "The part of gather_ns in which functions of views ran."),
		form.Key("map_locked", form.Bool(&m.Locked, "whether functions wait for Python's lock"), "Whether functions of views have waited for the lock of Python's interpreter."),
		form.Key("bad", count(&m.Bad), "The records with rows of zeros, because they cannot be computed."),
		form.Key("stall_ns", spent(&m.Stall), "The time in which enough batches were ready."),
		form.Key("decoding_ns", spent(&m.Decoding), "The processor time of decompressing, also ahead of the loop and for other loaders over the dataset."),
		form.Key("delayed_ns", spent(&m.Delayed), "The time in which threads that decompress waited for a processor."),
		form.Key("processors", number(&m.Processors), "How many processors the process may use."),
		form.Key("rows", count(&m.Rows), "The rows of this process's blocks."),
		form.Key("bytes", count(&m.Bytes), "The bytes of this process's blocks."),
		form.Key("gathered_bytes", count(&m.Gathered), "More than bytes if whole batches are gathered."),
		form.Key("arrays", number(&m.Arrays), "The arrays of a batch."),
		form.Key("combinable", number(&m.Combinable), "How many arrays fewer there were if fields of equal type, shape and spec were one."),
		form.Key("devices", number(&m.Devices), "The devices of this process."),
		form.Key("platform", platform{&m.Platform}, `The platform of the devices, such as "gpu". Left out without devices.`),
		form.Key("batch_size", count(&m.BatchSize), "The rows of a global batch."),
		form.Key("records", count(&m.Records), "The records of the dataset."),
		form.Key("prefetch", count(&m.Prefetch), "How many batches are read ahead."),
		form.Key("device_prefetch", count(&m.DevicePrefetch), "How many batches are sent to devices ahead."),
		form.Key("bounded", form.Bool(&m.Bounded, "whether max_host_bytes bounds what is read ahead"), "Whether max_host_bytes leaves no memory for the batches that are read ahead."),
		form.Key("samples", samples(&m.Samples), ""),
		form.Key("windows", windows(&m.Windows), ""),
	))
}

func samples(s *diagnosis.Samples) form.Value {
	return form.Defined("samples", "What the devices and the thread of the program did at some steps.", form.Object("samples",
		form.Key("steps", sampled(&s.Steps), "Steps that were sampled."),
		form.Key("idle", sampled(&s.Idle), "Of these, steps at whose end the devices had nothing to do."),
		form.Key("dry", sampled(&s.Dry), "Of these, steps at whose begin the devices had nothing to do."),
		form.Key("inside", sampled(&s.Inside), "Steps that were sampled at a time inside of the step."),
		form.Key("busy", sampled(&s.Busy), "Of these, steps inside of which the devices computed."),
		form.Key("step_ns", spent(&s.Step), "The time of the sampled steps that have no sample inside."),
		form.Key("cpu_ns", spent(&s.CPU), "The part of step_ns in which the thread of the program ran, or waited for a CPU."),
	))
}

func windows(q *sampler.Quality) form.Value {
	return form.Defined("windows", `How well an order with windows shuffles, such as "blocks", and what that costs.`, form.Object("windows",
		form.Key("blocks", count(&q.Blocks), "The blocks of the dataset.").Required(),
		form.Key("windows", count(&q.Windows), "The windows of an epoch.").Required(),
		form.Key("window", count(&q.Window), "The most blocks of a window.").Required(),
		form.Key("records", count(&q.Records), "The most records of a window.").Required(),
		form.Key("bytes", count(&q.Bytes), "The bytes of these records, in the fields of a batch.").Required(),
		form.Key("variance_percent", count(&q.Percent), "The most that the variance of a batch's mean can be, in percent of the variance with independent records.").Required(),
	))
}

// platform is a name that may be empty.
type platform struct{ to *string }

func (v platform) Read(r *jsontext.Reader) (err error) {
	*v.to, err = r.Text("the name of a platform")
	return err
}

func (v platform) Write(w *jsontext.Writer) { w.String(*v.to) }
func (v platform) Given() bool              { return *v.to != "" }
func (v platform) Describe(s *form.Schema)  { s.Rule(`"type":"string","maxLength":1024`) }
