package view_test

import (
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

var text = source.Field{Name: "t", Type: dtype.Uint8, Ragged: 1, Logical: "string"}

// rowsOf returns rows of text; "-" stands for a null.
func rowsOf(texts ...string) (rows [][]byte) {
	for _, t := range texts {
		row := []byte(t)
		if t == "-" {
			row = nil
		}
		rows = append(rows, row)
	}
	return rows
}

// TestConstantsFingerprint: runs, names, types and rows are part of the fingerprint.
func TestConstantsFingerprint(t *testing.T) {
	src := synthetic.New(3, source.Field{Name: "x", Type: dtype.Int8})
	other, bytes := text, text
	other.Name, bytes.Logical = "u", "binary"
	seen := map[source.Fingerprint]int{fingerprint(t, src): -1}
	for i, v := range []source.Source{
		must(view.Constants(src, []int64{1, 2}, view.Constant{Field: text, Rows: rowsOf("a", "b")})),
		must(view.Constants(src, []int64{2, 1}, view.Constant{Field: text, Rows: rowsOf("a", "b")})),
		must(view.Constants(src, []int64{1, 2}, view.Constant{Field: text, Rows: rowsOf("a", "c")})),
		must(view.Constants(src, []int64{1, 2}, view.Constant{Field: text, Rows: rowsOf("ab", "")})),
		must(view.Constants(src, []int64{1, 2}, view.Constant{Field: text, Rows: rowsOf("ab", "-")})),
		must(view.Constants(src, []int64{1, 2}, view.Constant{Field: other, Rows: rowsOf("a", "b")})),
		must(view.Constants(src, []int64{1, 2}, view.Constant{Field: bytes, Rows: rowsOf("a", "b")})),
		must(view.Constants(src, []int64{1, 2})),
	} {
		f := fingerprint(t, v)
		if k, ok := seen[f]; ok {
			t.Errorf("views %d and %d have one fingerprint", k, i)
		}
		seen[f] = i
	}
}

// TestConstantsRefused: the runs and the rows must fit the dataset and the field.
func TestConstantsRefused(t *testing.T) {
	src := synthetic.New(3, source.Field{Name: "x", Type: dtype.Int8})
	number, deep := source.Field{Name: "n", Type: dtype.Int64}, text
	deep.Ragged = 2
	taken, unnamed := text, text
	taken.Name, unnamed.Name = "x", ""
	for _, c := range []struct {
		runs  []int64
		field source.Field
		rows  [][]byte
		want  string
	}{
		{[]int64{1, 1}, text, rowsOf("a", "b"), "the runs have 2 records, but the dataset has 3"},
		{[]int64{3, 1}, text, rowsOf("a", "b"), "run 1 has 1 records, but 0 are left"},
		{[]int64{4, -1}, text, rowsOf("a", "b"), "run 0 has 4 records, but 3 are left"},
		{[]int64{-1, 4}, text, rowsOf("a", "b"), "run 0 has -1 records, but 3 are left"},
		{[]int64{3}, text, rowsOf("a", "b"), `the constant field "t" has 2 rows of type string, but there are 1 runs, and only one dimension may vary`},
		{[]int64{3}, deep, rowsOf("a"), `the constant field "t" has 1 rows of type list<string>, but there are 1 runs, and only one dimension may vary`},
		{[]int64{3}, number, rowsOf("a"), `the constant field "n" has a row of 1 bytes in run 0, but int64 has 8`},
		{[]int64{3}, taken, rowsOf("a"), `two fields of the dataset are called "x"; give each field one name`},
		{[]int64{3}, unnamed, rowsOf("a"), `"" is not a name for a field: it must be UTF-8 and not empty`},
	} {
		_, err := view.Constants(src, c.runs, view.Constant{Field: c.field, Rows: c.rows})
		if status.CodeOf(err) != status.InvalidArgument || strings.TrimPrefix(err.Error(), "view: ") != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
