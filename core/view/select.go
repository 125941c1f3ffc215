package view

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Select returns a view with some of the fields, in the order of names. All other
// fields, and all columns that cannot be arrays, are left out. A selection of every
// field in its order has the fingerprint of the dataset.
func Select(src source.Source, names ...string) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	schema := src.Schema()
	fields := make([]column, len(names))
	for i, name := range names {
		n, err := schema.Find(name)
		if err != nil {
			return nil, err
		}
		fields[i] = column{name: name, below: n}
	}
	return withFields("selection", src, fields, nil)
}

// checkName returns an error if a text cannot name a new field.
func checkName(name string) error {
	if name == "" || !utf8.ValidString(name) {
		return status.Errorf(status.InvalidArgument, "view", "%q is not a name for a field: it must be UTF-8 and not empty", name)
	}
	return nil
}

// column is a field of a chain: its name, and its number in a dataset below.
type column struct {
	name  string
	below int
}

// withFields returns a view of src with other fields, numbered as in src.
func withFields(kind string, src source.Source, fields []column, skipped []source.Skipped) (source.Source, error) {
	v, err := over(kind, src)
	if err != nil {
		return nil, err
	}
	schema := source.Schema{Skipped: skipped}
	for i := range fields {
		f := v.schema.Fields[fields[i].below]
		f.Name = fields[i].name
		if err := addField(&schema, kind, f); err != nil {
			return nil, err
		}
		if v.fields != nil {
			fields[i].below = v.fields[fields[i].below].below
		}
	}
	if err := checkSkipped(kind, schema); err != nil {
		return nil, err
	}
	v.schema = schema
	v.choose(fields)
	return v, nil
}

// addField appends a field to a schema. It returns an error if the schema has a field with its name.
func addField(schema *source.Schema, kind string, f source.Field) error {
	if _, _, twice := schema.Field(f.Name); twice {
		return status.Errorf(status.InvalidArgument, "view", "two fields of the %s are called %q", kind, f.Name).
			WithHint("give each field one name").With("field", f.Name)
	}
	schema.Fields = append(schema.Fields, f)
	return nil
}

// checkSkipped returns an error if a field has the name of a column that is not a field.
func checkSkipped(kind string, schema source.Schema) error {
	for _, s := range schema.Skipped {
		if _, _, found := schema.Field(s.Name); found {
			return status.Errorf(status.InvalidArgument, "view", "a field of the %s and a column of type %s, which is not a field, are called %q", kind, s.Type, s.Name).
				WithHint("give another name, or select the fields first").With("field", s.Name)
		}
	}
	return nil
}

// identifyFields adds fields to the fingerprint of a dataset, unless they are all of
// its fields.
func identifyFields(below source.Fingerprint, fields []column, schema source.Schema) source.Fingerprint {
	same := func(f column, s source.Field) bool { return f.name == s.Name }
	if fields == nil || slices.EqualFunc(fields, schema.Fields, same) && inOrder(fields) {
		return below
	}
	h := hashOf("fields", below)
	for _, f := range fields {
		text := binary.LittleEndian.AppendUint64(nil, uint64(f.below))
		text = binary.LittleEndian.AppendUint64(text, uint64(len(f.name)))
		h.Write(append(text, f.name...))
	}
	return fingerprint(h)
}

// inOrder reports whether the k-th field is field k below.
func inOrder(fields []column) bool {
	for k, f := range fields {
		if f.below != k {
			return false
		}
	}
	return true
}
