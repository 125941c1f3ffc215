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

// Constants returns a view with more fields, after those of src. The records are divided
// into runs, of which run i has runs[i] records. The fields take memory for each run, and
// none for each record. The caller must not change the rows later.
func Constants(src source.Source, runs []int64, more ...Constant) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	schema := src.Schema()
	v := &constants{base: newBase("dataset", src), starts: make([]int64, len(runs)+1), first: len(schema.Fields)}
	for i, n := range runs {
		if n < 0 || n > src.Len()-v.starts[i] {
			return nil, status.Errorf(status.InvalidArgument, "view", "run %d has %d records, but %d are left", i, n, src.Len()-v.starts[i])
		}
		v.starts[i+1] = v.starts[i] + n
	}
	if v.records = v.starts[len(runs)]; v.records != src.Len() {
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

// constants is a view with more fields, each of which is constant over runs of records.
type constants struct {
	base
	starts []int64    // by run: its first record; then the number of all records
	first  int        // number of the first constant field
	rows   [][][]byte // by constant field, then by run
}

// add adds a field.
func (v *constants) add(c Constant) error {
	f := c.Field
	f.Computed = true
	if err := checkName(f.Name); err != nil {
		return err
	}
	if _, _, twice := v.schema.Field(f.Name); twice {
		return status.Errorf(status.InvalidArgument, "view", "two fields of the %s are called %q", v.kind, f.Name).
			WithHint("give each field one name").With("field", f.Name)
	}
	if f.Ragged > 1 || len(c.Rows) != len(v.starts)-1 {
		return status.Errorf(status.InvalidArgument, "view", "the constant field %q has %d rows of type %s, but there are %d runs, and only one dimension may vary",
			f.Name, len(c.Rows), f.TypeString(), len(v.starts)-1).With("field", f.Name)
	}
	for i, row := range c.Rows {
		f.Nullable = f.Nullable || row == nil
		f.HasNulls = f.HasNulls || row == nil && v.starts[i] < v.starts[i+1]
		if size := f.RowBytes(); row != nil && len(row) != size && (f.Ragged == 0 || len(row)%size != 0) {
			return status.Errorf(status.InvalidArgument, "view", "the constant field %q has a row of %d bytes in run %d, but %s has %d", f.Name, len(row), i, f.TypeString(), size).
				With("field", f.Name)
		}
	}
	v.schema.Fields, v.rows = append(v.schema.Fields, f), append(v.rows, c.Rows)
	return nil
}

func (v *constants) made(field int) bool { return field >= v.first }

func (v *constants) stored(field int) int { return field }

// row returns the row of a constant field.
func (v *constants) row(field int, record int64) []byte {
	run := sort.Search(len(v.starts)-2, func(i int) bool { return v.starts[i+1] > record })
	return v.rows[field-v.first][run]
}

// identify hashes the runs and the fields.
func (v *constants) identify(ctx context.Context, below []source.Fingerprint) (f source.Fingerprint, err error) {
	h := hashOf("constants", below...)
	if err := hashNumbers(ctx, h, int64(len(v.starts))); err != nil {
		return f, err
	}
	if err := hashNumbers(ctx, h, v.starts...); err != nil {
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
		return below(ctx, v.storedOf(fields), start, stop)
	})
	return f
}

// storedOf returns the fields that are not constant.
func (v *constants) storedOf(fields []int) []int {
	return slices.DeleteFunc(slices.Clone(fields), v.made)
}

// Gatherer implements source.Source.
func (v *constants) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return v.newPartly(v, parts)
}

// Reader implements source.Source.
func (v *constants) Reader(fields []int) (source.Reader, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	if err := v.schema.CheckFields(fields); err != nil {
		return nil, err
	}
	below, err := v.below[0].Reader(v.storedOf(fields))
	if err != nil {
		return nil, err
	}
	return &constantsReader{Reader: below, constants: v, reading: newReading(&v.base, fields)}, nil
}

// constantsReader reads stored rows, and finds the run of each constant row.
type constantsReader struct {
	source.Reader
	reading
	constants *constants
}

// Read implements source.Reader.
func (r *constantsReader) Read(ctx context.Context, spans []source.Span, use func() error) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.check(spans); err != nil {
			return err
		}
		list := r.spans()
		defer r.put(list)
		for i := range spans {
			if !r.constants.made(spans[i].Field) {
				*list = append(*list, source.Span{Field: spans[i].Field, Record: spans[i].Record})
			}
		}
		return r.Reader.Read(ctx, *list, func() error {
			rows := *list
			for i := range spans {
				if r.constants.made(spans[i].Field) {
					spans[i].Row = r.constants.row(spans[i].Field, spans[i].Record)
					continue
				}
				takeRow(&spans[i], &rows[0])
				rows = rows[1:]
			}
			return use()
		})
	})
}

// Lengths implements source.Reader.
func (r *constantsReader) Lengths(ctx context.Context, field int, records, out []int64) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.checkField(field); err != nil {
			return err
		}
		f := r.view.schema.Fields[field]
		switch {
		case !f.HasLengths():
			return source.FixedReader{}.Lengths(ctx, field, records, out)
		case !r.constants.made(field):
			return r.Reader.Lengths(ctx, field, records, out)
		}
		for i, record := range records {
			if err := r.view.checkExists(record); err != nil {
				return err
			}
			row := r.constants.row(field, record)
			if out[i] = int64(len(row) / f.RowBytes()); row == nil {
				out[i] = -1
			}
		}
		return r.Reader.Read(ctx, nil, func() error { return ended(ctx) }) // fails if the dataset below is closed
	})
}
