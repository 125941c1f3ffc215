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
	var p parser
	if err := form.Measurements.Read(text, p.top); err != nil {
		return nil, err
	}
	if len(p.processes) == 1 && len(p.silent) == 0 {
		return diagnosis.Diagnose(p.processes[0]), nil
	}
	return diagnosis.DiagnoseJob(p.processes, p.silent), nil
}

// parser reads the text of a document.
type parser struct {
	*jsontext.Reader
	processes []diagnosis.Measurements
	silent    []int
}

func (p *parser) top(r *jsontext.Reader, key string) (err error) {
	p.Reader = r
	switch key {
	case "processes":
		err = p.List("a list of measurements", MaxProcesses, func(int) error {
			m, err := p.measurements()
			p.processes = append(p.processes, m)
			return err
		})
	case "silent":
		err = p.List("a list of processes", MaxProcesses, func(int) error {
			n, err := p.Int("a process", 0, maxProcess)
			p.silent = append(p.silent, n)
			return err
		})
	}
	return err
}

const maxProcess = 1<<31 - 1

// keys lists the keys of the measurements of a process.
var keys = []string{
	"process", "batches", "age_ns", "wall_ns", "wait_ns", "peers_ns", "hand_over_ns", "build_ns", "gather_ns", "storage_ns", "decode_ns", "stall_ns", "decoding_ns", "delayed_ns",
	"processors", "rows", "bytes", "gathered_bytes", "arrays", "combinable", "devices", "platform", "batch_size", "records", "prefetch", "device_prefetch", "bounded", "samples", "windows",
}

func (p *parser) measurements() (m diagnosis.Measurements, err error) {
	times := map[string]*time.Duration{
		"age_ns": &m.Age, "wall_ns": &m.Wall, "wait_ns": &m.Wait, "peers_ns": &m.Peers, "hand_over_ns": &m.HandOver, "build_ns": &m.Build,
		"gather_ns": &m.Gather, "storage_ns": &m.Storage, "decode_ns": &m.Decode, "stall_ns": &m.Stall, "decoding_ns": &m.Decoding, "delayed_ns": &m.Delayed,
	}
	counts := map[string]*int64{
		"batches": &m.Batches, "rows": &m.Rows, "bytes": &m.Bytes, "gathered_bytes": &m.Gathered,
		"batch_size": &m.BatchSize, "records": &m.Records, "prefetch": &m.Prefetch, "device_prefetch": &m.DevicePrefetch,
	}
	ints := map[string]*int{"process": &m.Process, "processors": &m.Processors, "arrays": &m.Arrays, "combinable": &m.Combinable, "devices": &m.Devices}
	err = p.Members("measurements", 0, keys, func(key string) (err error) {
		switch {
		case times[key] != nil:
			err = p.time(times[key])
		case counts[key] != nil:
			*counts[key], err = p.Integer("a number", 0, jsontext.MaxInteger)
		case ints[key] != nil:
			*ints[key], err = p.Int("a number", 0, maxProcess)
		case key == "platform":
			m.Platform, err = p.Text("the name of a platform")
		case key == "bounded":
			m.Bounded, err = p.Bool("whether max_host_bytes bounds what is read ahead")
		case key == "samples":
			err = p.samples(&m.Samples)
		case key == "windows":
			err = p.windows(&m.Windows)
		}
		return err
	})
	return m, err
}

func (p *parser) samples(s *diagnosis.Samples) error {
	ints := map[string]*int{"steps": &s.Steps, "idle": &s.Idle, "dry": &s.Dry, "inside": &s.Inside, "busy": &s.Busy}
	times := map[string]*time.Duration{"step_ns": &s.Step, "cpu_ns": &s.CPU}
	return p.Members("samples", 0, []string{"steps", "idle", "dry", "inside", "busy", "step_ns", "cpu_ns"}, func(key string) (err error) {
		if to := ints[key]; to != nil {
			*to, err = p.Int("a number of samples", 0, maxProcess)
			return err
		}
		return p.time(times[key])
	})
}

// windowKeys lists the keys of the windows of an order.
var windowKeys = []string{"blocks", "windows", "window", "records", "bytes", "variance_percent"}

func (p *parser) windows(q *sampler.Quality) error {
	counts := map[string]*int64{
		"blocks": &q.Blocks, "windows": &q.Windows, "window": &q.Window, "records": &q.Records, "bytes": &q.Bytes, "variance_percent": &q.Percent,
	}
	return p.Members("windows", len(windowKeys), windowKeys, func(key string) (err error) {
		*counts[key], err = p.Integer("a number", 0, jsontext.MaxInteger)
		return err
	})
}

func (p *parser) time(to *time.Duration) error {
	n, err := p.Integer("a number of nanoseconds", 0, jsontext.MaxInteger)
	*to = time.Duration(n)
	return err
}
