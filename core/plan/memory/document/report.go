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
	for _, n := range []number{
		{"bytes", r.Bytes, r.Part != nil}, {"gradient_bytes", r.Gradient, r.Part != nil}, {"optimizer_bytes", r.States, r.Part != nil},
		{"global_bytes", r.Global, true}, {"copies", r.Copies, r.Part != nil},
	} {
		n.write(w)
	}
	w.Key("replicated").Strings(r.Replicated...)
	w.Close('}')
}

func kindOf(r memory.Row) string {
	return cmp.Or(r.Host, deviceMemory)
}

// number is a member of an object: null if it is not known, or above 2^53.
type number struct {
	key   string
	value int64
	known bool
}

func (n number) write(w *jsontext.Writer) {
	if w.Key(n.key); n.known && n.value <= jsontext.MaxInteger {
		w.Int(n.value)
	} else {
		w.Null()
	}
}

func writeTotals(w *jsontext.Writer, u *memory.Usage) {
	t, known := u.Totals, u.Complete()
	w.Open('{')
	for _, n := range []number{
		{"parameters", t.Count, true}, {"parameter_bytes", t.Parameters, known}, {"optimizer_bytes", t.States, known}, {"batch_bytes", t.Batch, known},
		{"stored_bytes", t.Stored, known}, {"gradient_bytes", t.Gradients, known}, {"host_bytes", t.Host, known},
		{"capacity_bytes", u.Tree.Capacity, u.Tree.Capacity > 0},
	} {
		n.write(w)
	}
	for _, interval := range []struct {
		key   string
		value *memory.Interval
	}{{"activation_bytes", u.Tree.Activations}, {"peak_bytes", t.Peak}} {
		if w.Key(interval.key); interval.value == nil || !known {
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
