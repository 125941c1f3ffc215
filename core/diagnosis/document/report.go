package document

import (
	"math"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Report writes a report as JSON:
//
//	{"meshfeed":1,"batches":400,"waited":0.6,"bound":"decode","process":null,"cause":null,
//	 "faster":2.4,"action":"set-argument","change":{"argument":"prefetch","value":4},"sentences":[…],
//	 "parts":[{"name":"wait","ns":6000000,"share":0.6},…],
//	 "samples":{"steps":10,"idle":0,"dry":0,"inside":9,"busy":9,"step_ns":40000000,"cpu_ns":1000000},
//	 "processes":[{"process":0,"batches":400,"waited":0.6,"step_ns":4000000,"idle_ns":null,
//	  "bound":"decode","age_ns":0},…],"silent":[],"windows":null}
//
// Times are per batch, and shares are relative to the wall time. Process and cause are null
// unless the bound is "process" and the late process is known. Change is null unless the
// action is "set-argument". Windows is null unless the order has windows. The idle time of
// the devices, idle_ns, is null if it is not known.
func Report(r *diagnosis.Report) []byte {
	w := &jsontext.Writer{}
	w.Open('{')
	w.Field("meshfeed", form.Version).Field("batches", r.Batches).FixedField("waited", thousandths(r.Waited))
	w.Key("bound").String(string(r.Bound))
	if r.Process >= 0 {
		w.Key("process").Int(int64(r.Process))
		w.Key("cause").String(string(r.Cause))
	} else {
		w.Key("process").Null()
		w.Key("cause").Null()
	}
	w.Key("faster").Fixed(thousandths(r.Faster))
	w.Key("action").String(string(r.Action))
	if w.Key("change"); r.Change.Argument == "" {
		w.Null()
	} else {
		w.Open('{')
		w.Key("argument").String(r.Change.Argument)
		w.Key("value").Raw(r.Change.Value)
		w.Close('}')
	}
	w.Key("sentences").Strings(r.Sentences...)
	w.Key("parts").Open('[')
	for _, p := range r.Parts {
		writePart(w, p)
	}
	w.Close(']')
	w.Key("samples")
	writeSamples(w, r.Samples)
	w.Key("processes").Open('[')
	for _, p := range r.Processes {
		writeProcess(w, p)
	}
	w.Close(']')
	w.Key("silent").Ints(r.Silent...)
	w.Key("windows")
	writeWindows(w, r.Windows)
	w.Close('}')
	return w.Text
}

func writePart(w *jsontext.Writer, p diagnosis.Part) {
	w.Open('{')
	w.Key("name").String(p.Name)
	w.Field("ns", int64(p.Time)).FixedField("share", thousandths(p.Share))
	w.Close('}')
}

func writeSamples(w *jsontext.Writer, s diagnosis.Samples) {
	w.Open('{')
	w.Field("steps", int64(s.Steps)).Field("idle", int64(s.Idle)).Field("dry", int64(s.Dry)).
		Field("inside", int64(s.Inside)).Field("busy", int64(s.Busy)).
		Field("step_ns", int64(s.Step)).Field("cpu_ns", int64(s.CPU))
	w.Close('}')
}

func writeProcess(w *jsontext.Writer, p diagnosis.Row) {
	w.Open('{')
	w.Field("process", int64(p.Process)).Field("batches", p.Batches).FixedField("waited", thousandths(p.Waited)).
		Field("step_ns", int64(p.Step)).Field("idle_ns", int64(p.Idle))
	w.Key("bound").String(string(p.Bound))
	w.Key("age_ns").Int(int64(p.Age))
	w.Close('}')
}

func writeWindows(w *jsontext.Writer, q sampler.Quality) {
	if q.Blocks == 0 {
		w.Null()
		return
	}
	windows(&q).Write(w)
}

func thousandths(f float64) int64 { return int64(math.Round(1000 * f)) }
