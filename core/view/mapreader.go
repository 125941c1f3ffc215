package view

import (
	"context"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
)

// Gatherer implements source.Source.
func (v *mapped) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := v.base.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	return &inRuns{g, v.most() * v.options.Workers}, nil
}

// inRuns gathers long lists of records in runs, which bounds the memory of computed rows.
type inRuns struct {
	source.Gatherer
	most int
}

// Gather implements source.Gatherer.
func (g *inRuns) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	if len(records) <= g.most {
		return g.Gatherer.Gather(ctx, draw, records, jobs)
	}
	var some []source.Job
	for from := 0; from < len(records); from += g.most {
		to := min(from+g.most, len(records))
		some = some[:0]
		for _, j := range jobs {
			first, last := max(j.Rows[0], from), min(j.Rows[1], to)
			if first < last && j.Rows[1] <= len(records) && len(j.Dst) > 0 {
				j = j.Between(first, last)
				j.Rows = [2]int{first - from, last - from}
				some = append(some, j)
			}
		}
		if err := g.Gatherer.Gather(ctx, draw, records[from:to], some); err != nil {
			return err
		}
	}
	return nil
}

// Reader implements source.Source.
func (v *mapped) Reader(fields []int) (source.Reader, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	if err := v.schema.CheckFields(fields); err != nil {
		return nil, err
	}
	below, err := v.below[0].Reader(v.fieldsBelow(fields))
	if err != nil {
		return nil, err
	}
	return &mapReader{reader: reader{view: &v.base, fields: slices.Clone(fields), below: []source.Reader{below}}, view: v}, nil
}

// mapReader computes the rows that it reads. A record is computed once for all fields of a Read.
type mapReader struct {
	reader
	view *mapped
	pool sync.Pool // holds *mapRead
}

// mapRead is the working memory of one Read.
type mapRead struct {
	records []int64       // that are computed, most of them once
	at      []int         // by span of a computed field: the index of its record in records
	below   []source.Span // of the fields of the function, field by field; then passed rows
}

// Read implements source.Reader.
func (r *mapReader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	v := r.view
	return v.call(ctx, func(ctx context.Context) error {
		if err := r.check(spans); err != nil {
			return err
		}
		s, ok := r.pool.Get().(*mapRead)
		if !ok {
			s = new(mapRead)
		}
		defer r.pool.Put(s)
		defer s.reset()
		s.ask(v, spans)
		return r.below[0].Read(ctx, draw, s.below, func() error {
			if err := ended(ctx); err != nil {
				return err
			}
			if len(s.records) == 0 {
				s.set(v, spans, nil)
				return use()
			}
			rows := v.rowsOf(draw, s.records, s.below)
			free, err := v.compute(ctx, rows)
			if err != nil {
				return err
			}
			defer free()
			for _, b := range rows.bad {
				var in []source.Span
				for k := range v.fields {
					in = append(in, rows.In[k][b.index])
				}
				r.bad(ctx, draw, rows.Records[b.index], in, b.err)
			}
			s.set(v, spans, rows)
			return use()
		})
	})
}

// reset drops references to memory of the reader below.
func (s *mapRead) reset() {
	clear(s.below)
	s.records, s.at, s.below = s.records[:0], s.at[:0], s.below[:0]
}

// ask lists the records to compute, and what to read for them.
func (s *mapRead) ask(v *mapped, spans []source.Span) {
	var index map[int64]int // of records, if later fields have other ones than the first
	first, again := -1, false
	for i := range spans {
		if v.made[spans[i].Field] < 0 {
			continue
		}
		record, next := spans[i].Record, 0
		if n := len(s.at); n > 0 {
			next = s.at[n-1] + 1
			again = again || spans[i].Field != first || record == s.records[0]
		} else {
			first = spans[i].Field
		}
		if !again {
			s.at, s.records = append(s.at, next), append(s.records, record)
			continue
		}
		// The other fields mostly have the records of the first one, in their order.
		if next >= len(s.records) {
			next = 0
		}
		if s.records[next] != record {
			if index == nil {
				index = make(map[int64]int, len(s.records))
				for k, known := range s.records {
					index[known] = k
				}
			}
			var known bool
			if next, known = index[record]; !known {
				next = len(s.records)
				index[record], s.records = next, append(s.records, record)
			}
		}
		s.at = append(s.at, next)
	}
	for _, field := range v.fields {
		for _, record := range s.records {
			s.below = append(s.below, source.Span{Field: field, Record: record})
		}
	}
	for i := range spans {
		if v.made[spans[i].Field] < 0 {
			s.below = append(s.below, source.Span{Field: v.origins[spans[i].Field].fields[0], Record: spans[i].Record})
		}
	}
}

// set sets the rows of the spans.
func (s *mapRead) set(v *mapped, spans []source.Span, rows *Rows) {
	passed, at := s.below[len(v.fields)*len(s.records):], s.at
	for i := range spans {
		if made := v.made[spans[i].Field]; made >= 0 {
			spans[i].Row, at = rows.Out[made][at[0]], at[1:]
			continue
		}
		takeRow(&spans[i], &passed[0])
		passed = passed[1:]
	}
}

// Lengths implements source.Reader. It computes the rows of a field that the function returns, some at a
// time.
func (r *mapReader) Lengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	if r.checkField(field) != nil || r.view.made[field] < 0 || !r.view.schema.Fields[field].HasLengths() {
		return r.reader.Lengths(ctx, draw, field, records, out)
	}
	most := r.view.most() * r.view.options.Workers
	for from := 0; from < len(records); from += most {
		to := min(from+most, len(records))
		spans := make([]source.Span, to-from)
		for i := range spans {
			spans[i].Field, spans[i].Record = field, records[from+i]
		}
		err := r.Read(ctx, draw, spans, func() error {
			for i := range spans {
				out[from+i] = int64(len(spans[i].Row) / max(1, r.view.schema.Fields[field].RowBytes()))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
