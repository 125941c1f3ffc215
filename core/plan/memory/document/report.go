package document

import (
	"cmp"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Report describes the memory of a tree as JSON:
//
//	{"meshfeed":1,"devices":8,"arrays":{…},"optimizer":{…},"batch":{…},"totals":{…},"fits":true,"problems":[…]}
//
// Numbers are bytes of a device, except global_bytes, devices, copies and parameters, which
// is a number of elements. A value that is not known is null, such as the part of an array
// with a spec that does not fit, or a sum beyond 2^53.
func Report(u *memory.Usage) []byte {
	w := &jsontext.Writer{}
	w.Open('{')
	w.Key("meshfeed").Int(Version)
	w.Key("devices").Int(int64(u.Tree.Mesh.Size()))
	for _, group := range []struct {
		key  string
		rows []memory.Row
	}{{"arrays", u.Parameters}, {"optimizer", u.States}, {"batch", u.Batch}} {
		w.Key(group.key).Open('{')
		for _, r := range group.rows {
			w.Key(r.Name)
			writeRow(w, r)
		}
		w.Close('}')
	}
	w.Key("totals")
	writeTotals(w, u)
	w.Key("fits")
	if fits, known := u.Fits(); known {
		w.Bool(fits)
	} else {
		w.Null()
	}
	w.Key("problems").Open('[')
	for _, p := range u.Problems {
		p.Write(w)
	}
	w.Close(']')
	w.Close('}')
	return w.Text
}

func writeRow(w *jsontext.Writer, r memory.Row) {
	w.Open('{')
	w.Key("shape").Ints(r.Shape...)
	w.Key("dtype").String(r.Element.String())
	w.Key("spec")
	if r.Shard != nil {
		w.Null()
	} else {
		layouts.WriteSpec(w, r.Spec)
	}
	w.Key("memory_kind").String(kindOf(r))
	if r.Part == nil {
		w.Key("shard_shape").Null()
	} else {
		w.Key("shard_shape").Ints(r.Part...)
	}
	known := func(n int64) int64 { return unless(r.Part == nil, n) }
	w.Field("bytes", known(r.Bytes)).Field("gradient_bytes", known(r.Gradient)).Field("optimizer_bytes", known(r.States)).
		Field("global_bytes", r.Global).Field("copies", known(r.Copies))
	w.Key("replicated").Strings(r.Replicated...)
	w.Close('}')
}

func kindOf(r memory.Row) string {
	return cmp.Or(r.Host, deviceMemory)
}

// unless returns a number, or -1, which stands for a number that is not known.
func unless(unknown bool, n int64) int64 {
	if unknown {
		return -1
	}
	return n
}

func writeTotals(w *jsontext.Writer, u *memory.Usage) {
	t, complete := u.Totals, u.Complete()
	known := func(n int64) int64 { return unless(!complete, n) }
	w.Open('{')
	w.Field("parameters", t.Count).Field("parameter_bytes", known(t.Parameters)).Field("optimizer_bytes", known(t.States)).Field("batch_bytes", known(t.Batch)).
		Field("stored_bytes", known(t.Stored)).Field("gradient_bytes", known(t.Gradients)).Field("host_bytes", known(t.Host)).
		Field("capacity_bytes", unless(u.Tree.Capacity == 0, u.Tree.Capacity))
	for _, interval := range []struct {
		key   string
		value *memory.Interval
	}{{"activation_bytes", u.Tree.Activations}, {"peak_bytes", t.Peak}} {
		if w.Key(interval.key); interval.value == nil || !complete {
			w.Null()
			continue
		}
		w.Open('[')
		w.Int(interval.value.Low)
		w.Int(interval.value.High)
		w.Close(']')
	}
	w.Close('}')
}
