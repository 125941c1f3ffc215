package document

import (
	"math"

	"github.com/meshfeed/meshfeed/core/diagnosis"
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
//	  "bound":"decode","age_ns":0},…],"silent":[]}
//
// Times are per batch, and shares are those of the wall time. Process and cause are null
// unless the bound is "process" and the late process is known. Change is null unless the action
// is "set-argument". The time in which devices had no work, idle_ns, is null if it is not known.
func Report(r *diagnosis.Report) []byte {
	w := &jsontext.Writer{}
	w.Open('{')
	w.Key("meshfeed").Int(form.Version)
	w.Key("batches").Int(r.Batches)
	w.Key("waited").Fixed(thousandths(r.Waited))
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
		w.Open('{')
		w.Key("name").String(p.Name)
		w.Key("ns").Int(int64(p.Time))
		w.Key("share").Fixed(thousandths(p.Share))
		w.Close('}')
	}
	w.Close(']')
	w.Key("samples").Open('{')
	s := r.Samples
	for _, n := range []struct {
		key   string
		value int64
	}{{"steps", int64(s.Steps)}, {"idle", int64(s.Idle)}, {"dry", int64(s.Dry)}, {"inside", int64(s.Inside)}, {"busy", int64(s.Busy)}, {"step_ns", int64(s.Step)}, {"cpu_ns", int64(s.CPU)}} {
		w.Key(n.key).Int(n.value)
	}
	w.Close('}')
	w.Key("processes").Open('[')
	for _, p := range r.Processes {
		w.Open('{')
		w.Key("process").Int(int64(p.Process))
		w.Key("batches").Int(p.Batches)
		w.Key("waited").Fixed(thousandths(p.Waited))
		w.Key("step_ns").Int(int64(p.Step))
		if w.Key("idle_ns"); p.Idle < 0 {
			w.Null()
		} else {
			w.Int(int64(p.Idle))
		}
		w.Key("bound").String(string(p.Bound))
		w.Key("age_ns").Int(int64(p.Age))
		w.Close('}')
	}
	w.Close(']')
	w.Key("silent").Ints(r.Silent...)
	w.Close('}')
	return w.Text
}

func thousandths(f float64) int64 { return int64(math.Round(1000 * f)) }
