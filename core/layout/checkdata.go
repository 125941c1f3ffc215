package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// checkDataset reports a dataset that is smaller than a batch, and a remainder if
// the layout declares it an error.
func (l *Layout) checkDataset() {
	d := l.doc.Dataset
	if d == nil {
		return
	}
	l.checkOrder(d)
	l.reportWindows(d)
	l.reportFar(d)
	t, size := l.costs.totals, l.BatchSize()
	if size == 0 {
		return
	}
	facts := []problem.Fact{{Name: "records", Value: d.Records}, {Name: "batch", Value: size}}
	switch {
	case t.StepsPerEpoch == 0 && d.Records == 0:
		l.report(problem.Error, NoStep, "/dataset/records", "the dataset has no record, so that an epoch has no step", "give a dataset with records", facts...)
	case t.StepsPerEpoch == 0:
		l.report(problem.Error, NoStep, "/batch/size", fmt.Sprintf("the dataset has %d records, fewer than one batch of %d, so that an epoch has no step", d.Records, size),
			l.noStepHint(d.Records), facts...)
	case l.Remainder() == Refuse && t.RemainderRecords > 0:
		l.report(problem.Error, Uneven, "/batch/remainder", fmt.Sprintf("%d records in batches of %d leave %d over, but the remainder is an error", d.Records, size, t.RemainderRecords),
			`use "drop" or "pad", or a batch that divides the records`, append(facts, fact("remainder", t.RemainderRecords))...)
	}
}

// noStepHint names the largest batch size that fits the mesh and the number of
// records, if there is one.
func (l *Layout) noStepHint(records int64) string {
	least := int64(1) // the smallest batch size that fits the mesh
	for d := range l.doc.Batch.Size {
		least = plus(0, least, int64(l.batchTiles(d)))
	}
	if records < least {
		return fmt.Sprintf("pad the remainder: a batch that divides has at least %d rows", least)
	}
	return fmt.Sprintf("use a batch of at most %d, or pad the remainder", records-records%least)
}

// checkColumns compares the array's columns, which are ranges of the row's first
// dimension, with the array's shape.
func (l *Layout) checkColumns(a Array) {
	if a.Columns == nil {
		return
	}
	path, row := arrayPath(a.Name)+"/columns", a.RowShape()
	if len(row) == 0 {
		l.report(problem.Error, ColumnsNumber, path, fmt.Sprintf("array %s takes columns, but its rows are scalars: a row is one element, without a dimension to take columns of", wording.Quote(a.Name)),
			"leave columns out, or take a field with rows that have a dimension")
		return
	}
	n := int64(0)
	for _, c := range a.Columns {
		n = plus(n, int64(c[1]-c[0]), 1)
	}
	if n != int64(row[0]) {
		l.report(problem.Error, ColumnsNumber, path, fmt.Sprintf("array %s takes %d columns, but its shape has %d", wording.Quote(a.Name), n, row[0]),
			"the ranges together must be as long as the row's first dimension", fact("columns", n), fact("size", int64(row[0])))
	}
}

// CheckField returns the problems of an array of the kind Data with the fields of a
// dataset.
func CheckField(a Array, fields []FieldSpec) []problem.Problem {
	var r reporter
	r.checkField(a, fields)
	return r.problems
}

// checkField compares an array with its field.
func (r *reporter) checkField(a Array, fields []FieldSpec) {
	path := arrayPath(a.Name)
	i := slices.IndexFunc(fields, func(f FieldSpec) bool { return f.Name == a.Field })
	if i < 0 {
		if a.Field != a.Name {
			path += "/field"
		}
		r.report(problem.Error, UnknownField, path, fmt.Sprintf("array %s takes field %s, which the dataset does not have", wording.Quote(a.Name), wording.Quote(a.Field)), fieldHint(fields))
		return
	}
	f := fields[i]
	if f.Type != a.Type && f.Type.Narrow() != a.Type {
		r.report(problem.Error, FieldType, path+"/dtype", fmt.Sprintf("array %s is %s, but field %s is %s", wording.Quote(a.Name), a.Type, wording.Quote(f.Name), f.Type), typeHint(f))
	}
	r.checkFieldShape(a, f, path)
}

func typeHint(f FieldSpec) string {
	if n := f.Type.Narrow(); n != f.Type {
		return fmt.Sprintf("write %q, or %q to narrow it", f.Type, n)
	}
	return fmt.Sprintf("write %q", f.Type)
}

func (r *reporter) checkFieldShape(a Array, f FieldSpec, path string) {
	want, row := f.Shape, a.RowShape()
	if a.Columns != nil && len(f.Shape) > 0 && len(row) > 0 {
		for i, c := range a.Columns {
			if c[1] > f.Shape[0] {
				r.report(problem.Error, ColumnsRange, jsontext.Element(path+"/columns", i), fmt.Sprintf("array %s takes columns [%d, %d), but the rows of field %s have %d", wording.Quote(a.Name), c[0], c[1], wording.Quote(f.Name), f.Shape[0]),
					"columns are counted along the row's first dimension, from 0", fact("start", int64(c[0])), fact("stop", int64(c[1])), fact("size", int64(f.Shape[0])))
			}
		}
		want = append([]int{row[0]}, f.Shape[1:]...) // checkColumns compares their number
	}
	if slices.Equal(row, want) {
		return
	}
	hint := fmt.Sprintf("write %s after the batch dimensions", wording.Shape(want))
	if a.Columns != nil && len(f.Shape) == 0 {
		hint = "leave columns out: the rows of the field are scalars"
	}
	r.report(problem.Error, FieldShape, path+"/shape", fmt.Sprintf("rows of array %s have shape %s, but rows of field %s have %s", wording.Quote(a.Name), wording.Shape(row), wording.Quote(f.Name), wording.Shape(f.Shape)), hint)
}

func fieldHint(fields []FieldSpec) string {
	const most = 8
	if len(fields) == 0 {
		return "the dataset has no fields"
	}
	names := make([]string, 0, most)
	for _, f := range fields[:min(len(fields), most)] {
		names = append(names, wording.Quote(f.Name))
	}
	s := "the fields are " + strings.Join(names, ", ")
	if len(fields) > most {
		s += fmt.Sprintf(" and %d more", len(fields)-most)
	}
	return s
}
