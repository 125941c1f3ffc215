package form

import "github.com/meshfeed/meshfeed/internal/jsontext"

// The functions here adapt a value. They keep what a schema needs in fields and not in
// functions, so that a program that asks for no schema does not contain the code.

type defined struct {
	Value
	name, text string
}

// Defined puts the schema of a value into the definitions, under a name. The text may be
// empty.
func Defined(name, text string, value Value) Value { return &defined{value, name, text} }

func (v *defined) Describe(s *Schema) { s.refer(v.name, v.text, v.Value) }

type ruled struct {
	Value
	rule string
	only bool // the rule replaces the schema
}

// Described replaces the schema of a value by members that are JSON already, for a rule
// that reading does not check.
func Described(schema string, value Value) Value { return &ruled{value, schema, true} }

// With adds members to the schema of a value, such as a condition on the others.
func With(schema string, value Value) Value { return &ruled{value, schema, false} }

func (v *ruled) Describe(s *Schema) {
	if !v.only {
		v.Value.Describe(s)
	}
	s.Rule(v.rule)
}

type checked struct {
	Value
	before, after func(r *jsontext.Reader) error
}

// Before checks the text in front of a value.
func Before(check func(r *jsontext.Reader) error, value Value) Value {
	return &checked{Value: value, before: check}
}

// Checked checks a value after it was read.
func Checked(value Value, check func(r *jsontext.Reader) error) Value {
	return &checked{Value: value, after: check}
}

func (c *checked) Read(r *jsontext.Reader) error {
	if c.before != nil {
		if err := c.before(r); err != nil {
			return err
		}
	}
	err := c.Value.Read(r)
	if err != nil || c.after == nil {
		return err
	}
	return c.after(r)
}
