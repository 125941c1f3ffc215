package document

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/mixture"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// maxItems bounds lists.
const maxItems = 1 << 24

// readOnly is a value that is read and described. Nothing writes documents of views, so it has no
// other methods of the interface.
type readOnly struct {
	form.Value
	read   func(r *jsontext.Reader) error
	schema string // its members, as JSON
}

func (v readOnly) Read(r *jsontext.Reader) error { return v.read(r) }
func (v readOnly) Describe(s *form.Schema)       { s.Rule(v.schema) }

// name is a text of any length.
func name(to *string) form.Value {
	return readOnly{schema: `"type":"string"`, read: func(r *jsontext.Reader) (err error) {
		*to, err = r.Text("a name")
		return err
	}}
}

// integer is an integer of 64 bits. The view checks its range.
func integer[T ~int | ~int64](to *T) form.Value {
	return readOnly{schema: `"type":"integer"`, read: func(r *jsontext.Reader) error {
		if r.Kind() != jsontext.Number {
			return r.Fail("expected an integer, but found %s", r.Kind())
		}
		digits := string(r.Skip())
		n, err := strconv.ParseInt(digits, 10, 64)
		if *to = T(n); err != nil {
			return r.Fail("expected an integer of 64 bits, but found %s", digits)
		}
		return nil
	}}
}

// choice is one of several words.
func choice[T ~string](to *T, words ...string) form.Value {
	return readOnly{schema: `"enum":["` + strings.Join(words, `","`) + `"]`, read: func(r *jsontext.Reader) error {
		word, err := r.Text("a word")
		if *to = T(word); err == nil && !slices.Contains(words, word) {
			last := len(words) - 1
			return r.Fail("expected %s or %q, but found %q", wording.QuotedList(words[:last]), words[last], word)
		}
		return err
	}}
}

func elementType(to *dtype.Type) form.Value {
	return form.Parsed(to, "an element type", dtype.Parse, dtype.All)
}

func names(to *[]string) form.Value { return form.List(to, "a list of names", maxItems, name) }

func sizes(to *[]int) form.Value { return form.List(to, "a list of sizes", maxItems, integer[int]) }

// returned is the list of the fields that a function returns.
func returned(to *[]source.Field) form.Value {
	return form.List(to, "a list of fields", maxItems, func(f *source.Field) form.Value {
		kind := choice(&f.Logical, "string", "binary")
		return form.Object("a field",
			form.Key("name", name(&f.Name), "Its name.").Required(),
			form.Key("dtype", elementType(&f.Type), "The type of its elements.").Required(),
			form.Key("shape", sizes(&f.Shape), "The shape of a row, or of an element of a ragged row.").Default("[]"),
			form.Key("ragged", ragged(&f.Ragged), "Whether the first dimension of its rows varies.").Default("false"),
			form.Key("kind", kind, "What ragged rows of bytes are, if they are more than bytes."))
	})
}

// ragged is a boolean that counts one dimension.
func ragged(to *int) form.Value {
	return readOnly{schema: `"type":"boolean"`, read: func(r *jsontext.Reader) error {
		is, err := r.Bool("true or false")
		if *to = 0; is {
			*to = 1
		}
		return err
	}}
}

type renaming struct{ field, name string }

func renamings(to *[]renaming) form.Value {
	return form.Described(`"type":"object","additionalProperties":{"type":"string"}`,
		form.ByName(to, "an object with a name for each field", nil, maxItems, func(r *renaming) (*string, form.Value) {
			return &r.field, name(&r.name)
		}))
}

func parts(to *[]view.Share) form.Value {
	list := form.List(to, "a list of parts", maxItems, func(s *view.Share) form.Value {
		return form.Object("a part",
			form.Key("share", share(&s.Of), "The share of the records, above 0.").Required(),
			form.Key("name", name(&s.Name), "The name, for errors."))
	})
	return form.Checked(form.With(`"minItems":1`, list), func(r *jsontext.Reader) error {
		if len(*to) == 0 {
			return r.Fail("expected at least one part, but the list is empty")
		}
		return nil
	})
}

func stacks(to *[]view.Stacked) form.Value {
	return form.List(to, "a list of stacks", maxItems, func(s *view.Stacked) form.Value {
		return form.Object("a stack",
			form.Key("name", name(&s.Name), "The name of the new field.").Required(),
			form.Key("fields", names(&s.Columns), "The fields that it joins.").Required())
	})
}

func stages(to *[]mixture.Stage) form.Value {
	return form.List(to, "a list of stages", maxItems, func(s *mixture.Stage) form.Value {
		return form.Object("a stage",
			form.Key("start", integer(&s.Start), "The first draw, counted over all epochs.").Default("0"),
			form.Key("weights", form.List(&s.Weights, "a list of weights", maxItems, weight), "A weight for each dataset, 0 for none of its rows.").Required())
	})
}

// weight is a number from 0 on. The mixture checks its range.
func weight(to *float64) form.Value {
	return readOnly{schema: `"type":"number","minimum":0`, read: func(r *jsontext.Reader) (err error) {
		*to, err = float(r)
		return err
	}}
}

// share is a number with any decimals.
func share(to *float64) form.Value {
	return readOnly{schema: `"type":"number","exclusiveMinimum":0,"maximum":1`, read: func(r *jsontext.Reader) (err error) {
		if r.Kind() != jsontext.Number {
			return r.Fail("expected a number, but found %s", r.Kind())
		}
		*to, err = float(r)
		return err
	}}
}

// value is a boolean or a number of any type. JSON has no complex numbers, infinities and NaN, so a
// list has the two parts of a complex number, and a string names another number.
func value(to *any) form.Value {
	const schema = `"type":["boolean","number","string","array"],"pattern":"^(nan|inf|-inf)$","minItems":2,"maxItems":2,` +
		`"items":{"type":["number","string"],"pattern":"^(nan|inf|-inf)$"}`
	return readOnly{schema: schema, read: func(r *jsontext.Reader) (err error) {
		switch r.Kind() {
		case jsontext.Boolean:
			*to, err = r.Bool("a boolean")
		case jsontext.List:
			var parts [2]float64
			err = r.Tuple("the two parts of a complex number", 2, func(i int) (err error) {
				parts[i], err = float(r)
				return err
			})
			*to = complex(parts[0], parts[1])
		case jsontext.Number:
			*to, err = number(r)
		default:
			*to, err = float(r)
		}
		return err
	}}
}

// number reads an int64 or a uint64 if that holds the number exactly, else a float64.
func number(r *jsontext.Reader) (any, error) {
	digits := string(r.Skip())
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return n, nil
	}
	return parsed(r, digits)
}

// float reads a number, or the name of one.
func float(r *jsontext.Reader) (float64, error) {
	switch r.Kind() {
	case jsontext.Number:
		return parsed(r, string(r.Skip()))
	case jsontext.String:
		name, err := r.Text("a number")
		if f, known := named[name]; known || err != nil {
			return f, err
		}
		return 0, r.Fail(`expected a number, "nan", "inf" or "-inf", but found %q`, name)
	}
	return 0, r.Fail("expected a number, but found %s", r.Kind())
}

func parsed(r *jsontext.Reader, digits string) (float64, error) {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, r.Fail("the number is too large")
	}
	return f, nil
}

var named = map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)}
