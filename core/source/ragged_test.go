package source_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// TestRaggedField checks the type of ragged rows, and why they are not rows of an array.
func TestRaggedField(t *testing.T) {
	const pad = `ds.pad("x", length=…) in Python, view.Pad in Go, mf_dataset_pad in C`
	const lists = "its rows are lists of different lengths; give them one length: " + pad
	const nested = "its rows are nested lists of different lengths; store them with one length"
	for _, c := range []struct {
		field     source.Field
		typ, why  string
		text      bool
		schemaLen int
	}{
		{source.Field{Type: dtype.Int32, Shape: []int{2, 3}}, "int32[2, 3]", "", false, 1},
		{source.Field{Type: dtype.Int32, Ragged: 1}, "list<int32>", lists, false, 0},
		{source.Field{Type: dtype.Float32, Shape: []int{3}, Ragged: 2}, "list<list<float32[3]>>", nested, false, 0},
		{source.Field{Type: dtype.Int64, Ragged: 1, Logical: "timestamp[us]"}, "list<timestamp[us]>", lists, false, 0},
		{source.Field{Type: dtype.Uint8, Ragged: 1, Logical: "large_string"}, "large_string",
			"its rows are text of different lengths; store token ids, or give the bytes one length: " + pad, true, 0},
		{source.Field{Type: dtype.Uint8, Ragged: 1, Logical: "binary"}, "binary",
			`its rows are bytes of different lengths; store decoded elements, give them a shape: ds.reshape("x", …) in Python, view.Reshape in Go, mf_dataset_reshape in C, or give them one length: ` + pad, false, 0},
		{source.Field{Type: dtype.Uint8, Ragged: 2, Logical: "binary"}, "list<binary>", nested, false, 0},
		{source.Field{Type: dtype.Uint8, Ragged: 1, Logical: "dictionary<values=string, indices=int8>"}, "dictionary<values=string, indices=int8>",
			"its rows are categories, given as text; store the indices instead: column.combine_chunks().indices in pyarrow, to_physical() in polars, cat.codes in pandas", true, 0},
	} {
		c.field.Name = "x"
		if got := c.field.TypeString(); got != c.typ {
			t.Errorf("type %s, want %s", got, c.typ)
		}
		if got := c.field.Why(); got != c.why || c.field.IsText() != c.text {
			t.Errorf("%s: text %v, %s", c.typ, c.field.IsText(), got)
		}
		if got := (source.Schema{Fields: []source.Field{c.field}}).Fixed(); len(got) != c.schemaLen {
			t.Errorf("%s: fixed fields %v", c.typ, got)
		}
	}
}
