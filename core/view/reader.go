package view

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Reader implements source.Source.
func (b *base) Reader(fields []int) (source.Reader, error) {
	if err := b.calls.Enter(); err != nil {
		return nil, err
	}
	defer b.calls.Leave()
	if err := b.schema.CheckFields(fields); err != nil {
		return nil, err
	}
	r := &reader{view: b, fields: slices.Clone(fields)}
	r.pool.New = func() any {
		return &reading{lists: make([][]source.Span, len(b.below)), next: make([]int, len(b.below))}
	}
	for _, s := range b.below {
		one, err := s.Reader(b.fieldsBelow(fields))
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.below = append(r.below, one)
	}
	return r, nil
}

// reader makes the rows of a view from the rows that the readers of the datasets read.
type reader struct {
	view   *base
	fields []int
	below  []source.Reader // by dataset
	pool   sync.Pool       // holds *reading
}

// reading is the working memory of one Read.
type reading struct {
	records []int64         // by span: the record below
	lists   [][]source.Span // by dataset
	next    []int           // by dataset: the first row that is not used
	lengths []int64         // lengths of rows, if the values are not needed
	memory  memory
	owner   int   // the dataset that has the record of an error, or -1
	record  int64 // the number of that record there
}

// reset drops references to memory of the readers below.
func (s *reading) reset() {
	for i := range s.lists {
		clear(s.lists[i])
		s.lists[i] = s.lists[i][:0]
	}
	s.records, s.lengths = s.records[:0], s.lengths[:0]
	clear(s.next)
	s.memory.reset()
}

// check returns an error if a span asks for a row that the reader does not have.
func (r *reader) check(spans []source.Span) error {
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

func (r *reader) checkField(field int) error {
	if !slices.Contains(r.fields, field) {
		return status.Errorf(status.InvalidArgument, "view", "field %d is not among the fields of the reader", field)
	}
	return nil
}

// Read implements source.Reader. Each reader below calls the next one while its rows are valid.
func (r *reader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		if err := r.check(spans); err != nil {
			return err
		}
		s := r.pool.Get().(*reading)
		defer r.pool.Put(s)
		defer s.reset()
		if err := r.ask(ctx, draw, s, spans); err != nil {
			return err
		}
		s.owner = -1
		return r.read(ctx, draw, s, 0, func() (err error) {
			if err = r.set(ctx, draw, s, spans); err == nil {
				err = use()
			}
			if record, ok := recordOf(err); ok && r.view.checkExists(record) == nil {
				s.owner, s.record = r.view.ownerOf(draw, record)
			}
			return err
		})
	})
}

// ownerOf returns the dataset that has a record of the view, and its number there.
func (b *base) ownerOf(draw source.Draw, record int64) (dataset int, below int64) {
	list := b.lists.get()
	defer b.lists.put(list)
	b.located(draw, list, []int64{record})
	return b.find((*list)[0])
}

// ask lists what the readers below must read, and reads lengths.
func (r *reader) ask(ctx context.Context, draw source.Draw, s *reading, spans []source.Span) error {
	wanted := r.view.lists.get()
	defer r.view.lists.put(wanted)
	for i := range spans {
		*wanted = append(*wanted, spans[i].Record)
	}
	r.view.located(draw, &s.records, *wanted)
	*wanted = (*wanted)[:0]
	field := 0
	for i := range spans {
		from := &r.view.origins[spans[i].Field]
		if from.lengths {
			field, *wanted = from.fields[0], append(*wanted, s.records[i])
			continue
		}
		dataset, record := r.view.find(s.records[i])
		for _, f := range from.fields {
			s.lists[dataset] = append(s.lists[dataset], source.Span{Field: f, Record: record})
		}
	}
	if len(*wanted) == 0 {
		return nil
	}
	s.lengths = slices.Grow(s.lengths, len(*wanted))[:len(*wanted)]
	return source.RowLengths(ctx, draw, r.below[0], r.view.below[0].Schema().Fields[field], field, *wanted, s.lengths)
}

// read reads the rows of the datasets from number i on.
func (r *reader) read(ctx context.Context, draw source.Draw, s *reading, i int, use func() error) error {
	for len(r.below) > 1 && i < len(r.below) && len(s.lists[i]) == 0 {
		i++
	}
	if i == len(r.below) {
		if err := ended(ctx); err != nil {
			return err
		}
		return use()
	}
	return named(func(use func() error) error { return r.below[i].Read(ctx, draw, s.lists[i], use) },
		func() error { return r.read(ctx, draw, s, i+1, use) },
		func(int64) (int64, bool) { return s.record, s.owner == i })
}

// set sets the rows of the spans.
func (r *reader) set(ctx context.Context, draw source.Draw, s *reading, spans []source.Span) error {
	lengths := s.lengths
	for i := range spans {
		from := &r.view.origins[spans[i].Field]
		if from.lengths {
			if err := from.compute(ctx, draw, &s.memory, &spans[i], nil, lengths[0]); err != nil {
				return err
			}
			lengths = lengths[1:]
			continue
		}
		dataset, _ := r.view.find(s.records[i])
		rows := s.lists[dataset][s.next[dataset]:][:len(from.fields)]
		s.next[dataset] += len(rows)
		switch {
		case from.compute != nil:
			err := from.compute(ctx, draw, &s.memory, &spans[i], rows, 0)
			if err != nil && from.zero && badData(err) {
				clear(spans[i].Row)
				r.bad(ctx, draw, spans[i].Record, rows, err)
			} else if err != nil {
				return err
			}
		case from.joined:
			if err := r.view.join(&s.memory, &spans[i], rows); err != nil {
				return err
			}
		default:
			takeRow(&spans[i], &rows[0])
		}
	}
	return nil
}

// bad counts a record with rows of zeros. below are the rows that they would be computed from. The dataset
// below names their file in the error.
func (r *reader) bad(ctx context.Context, draw source.Draw, record int64, below []source.Span, err error) {
	times := source.TimesOf(ctx)
	if times == nil {
		return // such as a read of a row by its number
	}
	times.AddBad(source.BadRecord{View: r.view, Record: record}, r.below[0].Read(ctx, draw, slices.Clone(below), func() error { return err }))
}

// takeRow copies the row, the nulls and the lists of a span.
func takeRow(to, from *source.Span) { to.Row, to.Nulls, to.Lists = from.Row, from.Nulls, from.Lists }

// join sets a row that joins the rows of fields.
func (b *base) join(m *memory, to *source.Span, rows []source.Span) error {
	f, below := &b.schema.Fields[to.Field], b.below[0].Schema().Fields
	width := f.RowBytes() / len(rows)
	elements, nulls, count := m.bytes(f.RowBytes()), []bool(nil), 0
	for i := range rows {
		if err := below[rows[i].Field].CheckRow(&rows[i]); err != nil {
			return err
		}
		some := rows[i].Nulls
		if rows[i].Null() || some == nil {
			some = slices.Repeat([]bool{rows[i].Null()}, width/f.Type.Size())
		}
		nulls = append(nulls, some...)
		if cell := elements[i*width:][:width]; rows[i].Null() {
			clear(cell)
		} else {
			copy(cell, rows[i].Row)
		}
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
func (r *reader) Lengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	if err := r.checkField(field); err != nil {
		return err
	}
	f := &r.view.schema.Fields[field]
	switch {
	case !f.HasLengths():
		return source.FixedReader{}.Lengths(ctx, draw, field, records, out)
	case r.view.origins[field].compute != nil:
		return r.computedLengths(ctx, draw, field, records, out)
	}
	return r.view.call(ctx, func(ctx context.Context) error {
		for _, record := range records {
			if err := r.view.checkExists(record); err != nil {
				return err
			}
		}
		list, run := r.view.lists.get(), r.view.lists.get()
		defer r.view.lists.put(list)
		defer r.view.lists.put(run)
		r.view.located(draw, list, records)
		below := r.view.origins[field].fields[0]
		for from, to := 0, 0; from < len(records); from = to {
			dataset, _ := r.view.find((*list)[from])
			*run = (*run)[:0]
			for start, end := r.view.starts[dataset], r.view.starts[dataset+1]; to < len(records) && start <= (*list)[to] && (*list)[to] < end; to++ {
				*run = append(*run, (*list)[to]-start)
			}
			if err := r.below[dataset].Lengths(ctx, draw, below, *run, out[from:to]); err != nil {
				return err
			}
		}
		return ended(ctx)
	})
}

// computedLengths reads rows, and returns their lengths.
func (r *reader) computedLengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	spans := make([]source.Span, len(records))
	for i := range spans {
		spans[i].Field, spans[i].Record = field, records[i]
	}
	return r.Read(ctx, draw, spans, func() error {
		for i := range spans {
			if out[i] = int64(len(spans[i].Row) / r.view.schema.Fields[field].RowBytes()); spans[i].Null() {
				out[i] = -1
			}
		}
		return nil
	})
}

// Ahead implements source.Reader.
func (r *reader) Ahead(draw source.Draw, records []int64) {
	r.view.ahead(draw, records, func(i int, list []int64) { r.below[i].Ahead(draw, list) })
}

// Close implements source.Reader.
func (r *reader) Close() error { return closeAll(r.below) }
