package view

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/status"
)

// reading is what the readers of all views share: the fields that a reader has, and a
// list of spans for each call under way.
type reading struct {
	view   *base
	fields []int
	pool   sync.Pool // of *[]source.Span
}

func newReading(view *base, fields []int) reading {
	return reading{view: view, fields: slices.Clone(fields)}
}

// check returns an error if a span asks for a row that the reader does not have.
func (r *reading) check(spans []source.Span) error {
	for i := range spans {
		if err := r.checkField(spans[i].Field); err != nil {
			return err
		}
		if err := r.view.checkExists(spans[i].Record); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) checkField(field int) error {
	if !slices.Contains(r.fields, field) {
		return status.Errorf(status.InvalidArgument, "view", "field %d is not among the fields of the reader", field)
	}
	return nil
}

// spans returns an empty list, with the capacity that an earlier call needed.
func (r *reading) spans() *[]source.Span {
	list, ok := r.pool.Get().(*[]source.Span)
	if !ok {
		list = new([]source.Span)
	}
	return list
}

// put takes back a list, and drops its references to memory of the reader below.
func (r *reading) put(list *[]source.Span) {
	clear(*list)
	*list = (*list)[:0]
	r.pool.Put(list)
}

// takeRow sets the row of a span to that of another.
func takeRow(to, from *source.Span) { to.Row, to.Nulls, to.Lists = from.Row, from.Nulls, from.Lists }

// Reader implements source.Source.
func (c *chain) Reader(fields []int) (source.Reader, error) {
	if err := c.calls.Enter(); err != nil {
		return nil, err
	}
	defer c.calls.Leave()
	if err := c.schema.CheckFields(fields); err != nil {
		return nil, err
	}
	below, err := c.src.Reader(c.numbers(fields))
	if err != nil {
		return nil, err
	}
	return &chainReader{Reader: below, chain: c, reading: newReading(&c.base, fields)}, nil
}

// chainReader reads renumbered records of renumbered fields.
type chainReader struct {
	source.Reader
	reading
	chain *chain
	lists lists
}

// Read implements source.Reader.
func (r *chainReader) Read(ctx context.Context, spans []source.Span, use func() error) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.check(spans); err != nil {
			return err
		}
		list, wanted, records := r.spans(), r.lists.get(), r.lists.get()
		defer r.put(list)
		defer r.lists.put(wanted)
		defer r.lists.put(records)
		for i := range spans {
			*wanted = append(*wanted, spans[i].Record)
		}
		r.chain.renumber(records, *wanted)
		for i := range spans {
			*list = append(*list, source.Span{Field: r.chain.number(spans[i].Field), Record: (*records)[i]})
		}
		return r.Reader.Read(ctx, *list, func() error {
			for i := range spans {
				takeRow(&spans[i], &(*list)[i])
			}
			return use()
		})
	})
}

// Lengths implements source.Reader.
func (r *chainReader) Lengths(ctx context.Context, field int, records, out []int64) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.checkField(field); err != nil {
			return err
		}
		list := r.lists.get()
		defer r.lists.put(list)
		for _, record := range records {
			if err := r.view.checkExists(record); err != nil {
				return err
			}
		}
		r.chain.renumber(list, records)
		return r.Reader.Lengths(ctx, r.chain.number(field), *list, out)
	})
}

// Ahead implements source.Reader.
func (r *chainReader) Ahead(records []int64) { r.chain.ahead(&r.lists, records, r.Reader.Ahead) }

// Reader implements source.Source.
func (v *concat) Reader(fields []int) (source.Reader, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	r := &concatReader{concat: v, reading: newReading(&v.base, fields), below: make([]source.Reader, len(v.below))}
	for i, s := range v.below {
		var err error
		if r.below[i], err = s.Reader(fields); err != nil {
			return nil, errors.Join(err, closeAll(r.below[:i]))
		}
	}
	return r, nil
}

// concatReader reads from the readers of the datasets.
type concatReader struct {
	reading
	concat *concat
	below  []source.Reader
}

// Read implements source.Reader. Each reader below calls the next one while its rows
// are valid.
func (r *concatReader) Read(ctx context.Context, spans []source.Span, use func() error) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.check(spans); err != nil {
			return err
		}
		return r.read(ctx, 0, spans, use)
	})
}

// read reads the spans of the datasets from number i on.
func (r *concatReader) read(ctx context.Context, i int, spans []source.Span, use func() error) error {
	if i == len(r.below) {
		if err := ended(ctx); err != nil {
			return err
		}
		return use()
	}
	first, end := r.concat.starts[i], r.concat.starts[i+1]
	list := r.spans()
	defer r.put(list)
	for k := range spans {
		if record := spans[k].Record; first <= record && record < end {
			*list = append(*list, source.Span{Field: spans[k].Field, Record: record - first})
		}
	}
	if len(*list) == 0 {
		return r.read(ctx, i+1, spans, use)
	}
	return r.below[i].Read(ctx, *list, func() error {
		rows := *list
		for k := range spans {
			if record := spans[k].Record; first <= record && record < end {
				takeRow(&spans[k], &rows[0])
				rows = rows[1:]
			}
		}
		return r.read(ctx, i+1, spans, use)
	})
}

// Lengths implements source.Reader.
func (r *concatReader) Lengths(ctx context.Context, field int, records, out []int64) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.checkField(field); err != nil {
			return err
		}
		if !r.view.schema.Fields[field].HasLengths() {
			return source.FixedReader{}.Lengths(ctx, field, records, out)
		}
		for from, to := 0, 0; from < len(records); from = to {
			if err := r.view.checkExists(records[from]); err != nil {
				return err
			}
			i := r.concat.find(records[from])
			var run []int64
			for to < len(records) && r.concat.starts[i] <= records[to] && records[to] < r.concat.starts[i+1] {
				run = append(run, records[to]-r.concat.starts[i])
				to++
			}
			if err := r.below[i].Lengths(ctx, field, run, out[from:to]); err != nil {
				return err
			}
		}
		return ended(ctx)
	})
}

// Ahead implements source.Reader.
func (r *concatReader) Ahead(records []int64) {
	r.concat.ahead(records, func(i int, list []int64) { r.below[i].Ahead(list) })
}

// Close implements source.Reader.
func (r *concatReader) Close() error { return closeAll(r.below) }

// Reader implements source.Source.
func (v *stack) Reader(fields []int) (source.Reader, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	if err := v.schema.CheckFields(fields); err != nil {
		return nil, err
	}
	below, err := v.below[0].Reader(v.columnsOf(fields))
	if err != nil {
		return nil, err
	}
	return &stackReader{Reader: below, stack: v, reading: newReading(&v.base, fields)}, nil
}

// stackReader joins the rows of columns.
type stackReader struct {
	source.Reader
	reading
	stack *stack
}

// Read implements source.Reader.
func (r *stackReader) Read(ctx context.Context, spans []source.Span, use func() error) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.check(spans); err != nil {
			return err
		}
		list := r.spans()
		defer r.put(list)
		for i := range spans {
			for _, c := range r.stack.columns[spans[i].Field] {
				*list = append(*list, source.Span{Field: c, Record: spans[i].Record})
			}
		}
		return r.Reader.Read(ctx, *list, func() error {
			rows := *list
			for i := range spans {
				n := len(r.stack.columns[spans[i].Field])
				if spans[i].Field < r.stack.plain {
					takeRow(&spans[i], &rows[0])
				} else {
					if err := r.stack.join(&spans[i], rows[:n]); err != nil {
						return err
					}
				}
				rows = rows[n:]
			}
			return use()
		})
	})
}

// join sets a row of a stacked field.
func (v *stack) join(to *source.Span, rows []source.Span) error {
	f := v.schema.Fields[to.Field]
	width := f.RowBytes() / len(rows)
	elements, nulls, count := make([]byte, 0, f.RowBytes()), []bool(nil), 0
	below := v.below[0].Schema().Fields
	for i := range rows {
		if err := below[rows[i].Field].CheckRow(&rows[i]); err != nil {
			return err
		}
		some := rows[i].Nulls
		if rows[i].Null() || some == nil {
			some = slices.Repeat([]bool{rows[i].Null()}, width/f.Type.Size())
		}
		row := rows[i].Row
		if row == nil {
			row = make([]byte, width)
		}
		elements, nulls = append(elements, row...), append(nulls, some...)
	}
	for _, null := range nulls {
		if null {
			count++
		}
	}
	if count == 0 || count < len(nulls) {
		to.Row = elements
	}
	if count > 0 && count < len(nulls) {
		to.Nulls = nulls
	}
	return nil
}

// Lengths implements source.Reader.
func (r *stackReader) Lengths(ctx context.Context, field int, records, out []int64) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.checkField(field); err != nil {
			return err
		}
		if !r.view.schema.Fields[field].HasLengths() {
			return source.FixedReader{}.Lengths(ctx, field, records, out)
		}
		return r.Reader.Lengths(ctx, r.stack.columns[field][0], records, out)
	})
}

// Reader implements source.Source. All fields of windows have fixed rows.
func (v *window) Reader(fields []int) (source.Reader, error) { return cut.Reader(v, fields) }
