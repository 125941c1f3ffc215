package view

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Constant is a field that [Constants] adds. All records of a run have the same row.
type Constant struct {
	Field source.Field // fixed, or ragged in one dimension; Nullable follows from the rows
	Rows  [][]byte     // by run, like Row of a [source.Span]: nil for null
}

// Constants returns a view with more fields, after the fields of src. The records are
// divided into runs. Run i has runs[i] records. The fields take memory for each run, and
// none for each record. The caller must not change the rows later.
func Constants(src source.Source, runs []int64, more ...Constant) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	schema := src.Schema()
	v := &constants{base: newBase("dataset", src), runs: make([]int64, len(runs)+1), first: len(schema.Fields)}
	v.origins = allOf(src)
	for i, n := range runs {
		if n < 0 || n > src.Len()-v.runs[i] {
			return nil, status.Errorf(status.InvalidArgument, "view", "run %d has %d records, but %d are left", i, n, src.Len()-v.runs[i])
		}
		v.runs[i+1] = v.runs[i] + n
	}
	if v.records = v.runs[len(runs)]; v.records != src.Len() {
		return nil, status.Errorf(status.InvalidArgument, "view", "the runs have %d records, but the dataset has %d", v.records, src.Len())
	}
	v.schema = source.Schema{Fields: slices.Clone(schema.Fields), Skipped: schema.Skipped}
	for _, c := range more {
		if err := v.add(c); err != nil {
			return nil, err
		}
	}
	if err := checkSkipped(v.kind, v.schema); err != nil {
		return nil, err
	}
	v.base.identify = v.identify
	return v, nil
}

// constants is a view with more fields. Each of them is constant over runs of records.
type constants struct {
	base
	runs  []int64    // by run: its first record; then the number of all records
	first int        // number of the first constant field
	rows  [][][]byte // by constant field, then by run
}

// add adds a field.
func (v *constants) add(c Constant) error {
	f := c.Field
	f.Computed = true
	if err := checkName(f.Name); err != nil {
		return err
	}
	if f.Ragged > 1 || len(c.Rows) != len(v.runs)-1 {
		return status.Errorf(status.InvalidArgument, "view", "the constant field %q has %d rows of type %s, but there are %d runs, and only one dimension may vary",
			f.Name, len(c.Rows), f.TypeString(), len(v.runs)-1).With("field", f.Name)
	}
	for i, row := range c.Rows {
		f.Nullable = f.Nullable || row == nil
		f.HasNulls = f.HasNulls || row == nil && v.runs[i] < v.runs[i+1]
		if size := f.RowBytes(); row != nil && len(row) != size && (f.Ragged == 0 || len(row)%size != 0) {
			return status.Errorf(status.InvalidArgument, "view", "the constant field %q has a row of %d bytes in run %d, but %s has %d", f.Name, len(row), i, f.TypeString(), size).
				With("field", f.Name)
		}
	}
	v.rows, v.origins = append(v.rows, c.Rows), append(v.origins, origin{compute: v.compute})
	return addField(&v.schema, v.kind, f)
}

// compute finds the row of a constant field.
func (v *constants) compute(_ context.Context, _ source.Draw, _ *memory, s *source.Span, _ []source.Span, _ int64) error {
	run := sort.Search(len(v.runs)-2, func(i int) bool { return v.runs[i+1] > s.Record })
	s.Row = v.rows[s.Field-v.first][run]
	return nil
}

// identify hashes the runs and the fields.
func (v *constants) identify(ctx context.Context, below []source.Fingerprint) (f source.Fingerprint, err error) {
	h := hashOf("constants", below...)
	if err := hashNumbers(ctx, h, int64(len(v.runs))); err != nil {
		return f, err
	}
	if err := hashNumbers(ctx, h, v.runs...); err != nil {
		return f, err
	}
	for i, rows := range v.rows {
		field := v.schema.Fields[v.first+i]
		fmt.Fprintf(h, "%q %q\n", field.Name, field.TypeString())
		for _, row := range rows {
			size := int64(len(row))
			if row == nil {
				size = -1
			}
			if err := hashNumbers(ctx, h, size); err != nil {
				return f, err
			}
			h.Write(row)
		}
	}
	return fingerprint(h), nil
}

// Facts implements source.Source.
func (v *constants) Facts() source.Facts {
	f := v.base.Facts()
	f.Check = v.checked(func(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
		return below(ctx, v.fieldsBelow(fields), start, stop)
	})
	return f
}
