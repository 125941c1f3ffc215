package view

import (
	"context"
	"errors"
	"time"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Rows are the rows of some records for the function of [Map], and the rows that it returns.
type Rows struct {
	// Records are the numbers of the records in the view. The rows must not depend on them.
	Records []int64

	// Keys are 64 random bits for each record, which differ in every epoch and with every seed of the
	// loader, and are equal on every mesh: see sampler.RecordKey. Padding has no row. Keys is nil
	// without Mapping.Keys.
	Keys [][2]uint32

	// Fields are the fields of Mapping.Fields. In holds their rows: In[field][i] is the row of
	// Records[i]. Rows are valid until the view has used what the function returns, and are read-only.
	Fields []source.Field
	In     [][]source.Span

	// Returned are the fields of Mapping.Out. The function sets their rows: Out[field][i] is the row of
	// Records[i], as bytes of its elements. It may be a row of In. Fixed returns memory for the rows of
	// a fixed field. A row of a ragged field that is not set is empty.
	Returned []source.Field
	Out      [][][]byte

	// Free, if the function sets it, is called when the rows of Out are no longer used.
	Free func()

	bad []badRow
}

// badRow is the error of a record with rows of zeros.
type badRow struct {
	index int // in Records
	err   error
}

// free calls Free.
func (r *Rows) free() {
	if r.Free != nil {
		r.Free()
	}
}

// Fixed returns memory for all rows of a fixed field in Out, one after the other, and sets the rows to it.
func (r *Rows) Fixed(field int) []byte {
	size := r.Returned[field].RowBytes()
	all := make([]byte, size*len(r.Records))
	for i := range r.Records {
		r.Out[field][i] = all[i*size : (i+1)*size : (i+1)*size]
	}
	return all
}

// some returns rows [from, to), for a call of its own.
func (r *Rows) some(from, to int) *Rows {
	s := &Rows{Records: r.Records[from:to], Fields: r.Fields, Returned: r.Returned}
	if r.Keys != nil {
		s.Keys = r.Keys[from:to]
	}
	for _, in := range r.In {
		s.In = append(s.In, in[from:to])
	}
	for _, out := range r.Out {
		s.Out = append(s.Out, out[from:to:to])
	}
	return s
}

// rowsOf returns the rows of records, without the rows that the function returns. Spans are the spans of
// the fields below, field by field.
func (v *mapped) rowsOf(draw source.Draw, records []int64, spans []source.Span) *Rows {
	n := len(records)
	r := &Rows{Records: records, Fields: v.in, Returned: v.out, Out: make([][][]byte, len(v.out))}
	for i := range v.fields {
		r.In = append(r.In, spans[i*n:(i+1)*n])
	}
	for i := range r.Out {
		r.Out[i] = make([][]byte, n)
	}
	if v.options.Keys {
		r.Keys = make([][2]uint32, n)
		for i, record := range records {
			r.Keys[i] = sampler.RecordKey(draw.Seed, draw.Epoch, record)
		}
	}
	return r
}

// compute calls the function for all rows, several calls at a time. It returns what to call when the
// rows are no longer used.
func (v *mapped) compute(ctx context.Context, rows *Rows) (free func(), err error) {
	began := time.Now()
	defer func() { source.TimesOf(ctx).AddMap(time.Since(began)) }()
	n := len(rows.Records)
	each := v.perCall(n)
	calls := make([]*Rows, (n+each-1)/each)
	for i := range calls {
		calls[i] = rows.some(i*each, min((i+1)*each, n))
	}
	free = func() {
		for _, c := range calls {
			c.free()
		}
	}
	if len(calls) == 1 {
		err = v.apply(ctx, calls[0])
	} else {
		// Parallel would return when its context ends, while calls still use the rows.
		err = guard.Parallel(context.WithoutCancel(ctx), "view", len(calls), v.options.Workers, func(i int) error { return v.apply(ctx, calls[i]) })
	}
	for i, c := range calls {
		for _, b := range c.bad {
			rows.bad = append(rows.bad, badRow{i*each + b.index, b.err})
		}
	}
	if err != nil {
		free()
	}
	return free, err
}

// apply calls the function for some rows. After an error it calls it for each row alone, so that the
// error names the record, or so that the other rows are computed.
func (v *mapped) apply(ctx context.Context, rows *Rows) error {
	err := v.run(ctx, rows)
	if err == nil {
		return nil
	}
	if end := ended(ctx); end != nil {
		return end // the other rows are not computed any more, so the error has no record
	}
	records := rows.Records
	if len(records) == 1 {
		return v.failed(rows, 0, err)
	}
	var done []*Rows
	rows.Free = func() {
		for _, one := range done {
			one.free()
		}
	}
	for i := range records {
		one := rows.some(i, i+1)
		alone := v.run(ctx, one)
		done = append(done, one)
		if end := ended(ctx); end != nil {
			return end
		}
		if alone != nil {
			if err := v.failed(rows, i, alone); err != nil {
				return err
			}
		}
	}
	if rows.bad != nil {
		return nil
	}
	return status.Errorf(status.InvalidArgument, "view", "the function %s fails for records %d to %d together, and for none of them alone: %w",
		v.name(), records[0], records[len(records)-1], err).
		WithHint("compute each row from that row alone; a function that expects a single row needs batched=False (Python)")
}

// failed sets the row i of each field to zeros, or returns the error of the function.
func (v *mapped) failed(rows *Rows, i int, err error) error {
	if err = v.failure(rows.Records[i], err); !v.options.Zero || !badData(err) {
		return err
	}
	for k, f := range v.out {
		rows.Out[k][i] = []byte{}
		if f.Ragged == 0 {
			rows.Out[k][i] = make([]byte, f.RowBytes())
		}
	}
	rows.bad = append(rows.bad, badRow{i, err})
	return nil
}

// badData reports whether an error follows from the data of a record alone, so that each process has it.
func badData(err error) bool {
	switch status.CodeOf(err) {
	case status.Cancelled, status.Timeout, status.IO, status.ResourceExhausted, status.InvalidState, status.Forked, status.Internal:
		return false
	}
	return true
}

// failure returns the error of the function for a record.
func (v *mapped) failure(record int64, err error) error {
	code, hint := status.InvalidArgument, ""
	if known, ok := errors.AsType[*status.Error](err); ok {
		code, hint = known.Code, known.Hint
		if err == error(known) { // its text has the hint, which ends the whole text
			bare := *known
			bare.Hint, err = "", &bare
		}
	}
	e := status.Errorf(code, "view", "record %d: the function %s failed: %w", record, v.name(), err).With("record", record)
	if hint != "" {
		e = e.WithHint("%s", hint)
	}
	return e
}

// run calls the function once, when a worker is free, and checks what it returns.
func (v *mapped) run(ctx context.Context, rows *Rows) error {
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
	}
	if err := ended(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := guard.Call("view", func() error { return v.options.Func(ctx, rows) }); err != nil {
		return err
	}
	v.timed(len(rows.Records), time.Since(began))
	for i, f := range v.out {
		size := max(f.RowBytes(), 1)
		for k, row := range rows.Out[i] {
			switch {
			case f.Ragged == 0 && len(row) != size:
				return status.Errorf(status.InvalidArgument, "view", "field %q has a row of %d bytes, but %s%v has %d", f.Name, len(row), f.Type, f.Shape, size)
			case len(row)%size != 0:
				return status.Errorf(status.InvalidArgument, "view", "field %q has a row of %d bytes, and an element has %d", f.Name, len(row), size)
			case row == nil:
				rows.Out[i][k] = []byte{} // nil would be null
			}
		}
	}
	return nil
}
