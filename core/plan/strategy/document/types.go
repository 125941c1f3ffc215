package document

import (
	"errors"

	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// positive is an integer of at least 1.
func positive[T ~int | ~int64](to *T, want string) form.Value {
	return form.Defined("positive", "", form.Integer(to, want, 1, layout.MaxInteger))
}

func size(to *int) form.Value     { return positive(to, "a size") }
func width(to *int) form.Value    { return positive(to, "a width") }
func count(to *int) form.Value    { return positive(to, "a number") }
func rate(to *int64) form.Value   { return positive(to, "a number") }
func tokens(to *int64) form.Value { return positive(to, "a number of tokens") }

func natural(to *int) form.Value {
	return form.Defined("size", "", form.Integer(to, "a number", 0, layout.MaxInteger))
}

func devices(to *int) form.Value {
	return form.Defined("devices", "A number of devices.", form.Integer(to, "a number of devices", 1, strategy.MaxDevices))
}

// optional is an integer from 0 to most, or nil.
func optional(to **int64, want string, most int64) form.Value {
	return form.Pointer(to, func(to *int64) form.Value { return form.Integer(to, want, 0, most) })
}

func latency(to **int64) form.Value {
	return optional(to, "a number of nanoseconds", strategy.MaxLatencyNs)
}

func boolean(to *bool) form.Value   { return form.Bool(to, "true or false") }
func flag(to **bool) form.Value     { return form.Pointer(to, boolean) }
func name(to *string) form.Value    { return form.Word(to, "a name") }
func element(to *string) form.Value { return form.Word(to, "an element type") }

func interval(to *[2]int) form.Value {
	const want = "an efficiency"
	return form.Tuple("an efficiency as [least, most]", form.Fixed(&to[0], want, 1, 1000), form.Fixed(&to[1], want, 1, 1000))
}

func spec(to *sharding.PartitionSpec) form.Value {
	return layouts.SpecOf(to, layout.MaxRank, func(to *string) form.Value { return form.Choice(to, "the name of an axis", strategy.Axes()...) })
}

// sizes is a size of an axis, or a list of sizes.
func sizes(to *[]int) form.Value {
	size := func(to *int) form.Value { return form.Integer(to, "a size", 1, strategy.MaxDevices) }
	one := func(to *int) form.Value {
		return form.Integer(to, "a size or a list of sizes", 1, strategy.MaxDevices)
	}
	return form.OneOrList(to, "a list of sizes", 1<<10, size, one)
}

// microBatch is a number of examples, which is the embedded value, or "auto", which is 0.
type microBatch struct{ form.Value }

const microBatches = `a number of examples or "auto"`

func (v microBatch) Read(r *jsontext.Reader) error {
	if r.Kind() != jsontext.String {
		return v.Value.Read(r)
	}
	word, err := r.Text(microBatches)
	if err == nil && word != strategy.Auto {
		return r.Fail("expected a number of examples or %q, but found %s", strategy.Auto, wording.Quote(word))
	}
	return err
}

func (v microBatch) Describe(s *form.Schema) { s.AnyOf(`"const":"auto"`, v.Value) }

// master is an element type, which is the embedded value, or null for no master copy.
type master struct {
	form.Value
	to *string
}

func (v master) Read(r *jsontext.Reader) error {
	if !r.Null() {
		return v.Value.Read(r)
	}
	*v.to = strategy.NoMaster
	return nil
}

func (v master) Write(w *jsontext.Writer) {
	if *v.to == strategy.NoMaster {
		w.Null()
	} else {
		v.Value.Write(w)
	}
}

func (v master) Describe(s *form.Schema) { s.AnyOf(`"type":"null"`, v.Value) }

// inputShape is "B", the batch dimension, and the shape of a row.
type inputShape struct{ *layout.ArraySpec }

func (a inputShape) Read(r *jsontext.Reader) error {
	a.Static, a.RowShape = true, []int{}
	err := r.List("a shape", layout.MaxRank, func(i int) error {
		if i == 0 {
			a.Static = false
			return batchDimension(r)
		}
		n, err := r.Int("a size", 0, layout.MaxInteger)
		a.RowShape = append(a.RowShape, n)
		return err
	})
	if err == nil && a.Static {
		return r.Fail("the shape is empty").WithHint(`begin the shape with "B", the batch dimension`)
	}
	return err
}

func batchDimension(r *jsontext.Reader) error {
	const want = `the batch dimension "B"`
	name, err := r.Text(want)
	if err == nil && name != "B" {
		return r.Fail("expected %s, but found %s", want, wording.Quote(name))
	}
	return err
}

func (a inputShape) Write(w *jsontext.Writer) {
	w.Open('[')
	w.String("B")
	for _, n := range a.RowShape {
		w.Int(int64(n))
	}
	w.Close(']')
}

func (a inputShape) Given() bool { return true }

func (a inputShape) Describe(s *form.Schema) {
	s.Rule(`"type":"array","minItems":1,"maxItems":32,"prefixItems":[{"const":"B"}]`)
	s.Object("items", layouts.Size(new(int)).Describe)
}

// misplaced adds a hint to the error about a key of a transformer that a document has in
// the model instead of inside "transformer".
func misplaced(err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	for _, key := range form.Keys(transformerMembers(new(strategy.Transformer))) {
		if e.Attr("path") == "/model/"+key {
			return e.WithHint(`write it inside "transformer", which may stand beside "preset"`)
		}
	}
	return err
}
