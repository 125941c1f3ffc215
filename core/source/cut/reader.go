package cut

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Reader returns a reader of whole rows of fixed fields, which it gathers. Closing
// the reader closes the gatherer.
func Reader(src source.Source, fields []int) (source.Reader, error) {
	schema := src.Schema()
	if err := schema.CheckFields(fields); err != nil {
		return nil, err
	}
	r := &reader{schema: schema, parts: map[int]int{}}
	var parts []source.Part
	for _, field := range fields {
		f := schema.Fields[field]
		if _, twice := r.parts[field]; twice {
			continue
		}
		if f.Ragged > 0 {
			return nil, status.Errorf(status.Unsupported, "source", "field %q is ragged, and its source only gathers rows of one shape", f.Name)
		}
		part := schema.Whole(field)
		r.parts[field] = len(parts)
		parts = append(parts, part)
		if f.Nullable { // gathered again with 1 in place of nulls, which shows where they are
			part.Fill = int64(1)
			if f.Type == dtype.Bool {
				part.Fill = true
			}
			parts = append(parts, part)
		}
	}
	var err error
	r.gatherer, err = src.Gatherer(parts)
	return r, err
}

// reader implements source.Reader by gathers.
type reader struct {
	source.FixedReader
	schema   source.Schema
	gatherer source.Gatherer
	parts    map[int]int // by field: its part, with zeros for nulls; the next part has ones
	pool     sync.Pool   // holds *scratch
}

// scratch is the working memory of one Read.
type scratch struct {
	records []int64
	jobs    []source.Job
	rows    []byte
	nulls   []bool
}

// Read implements source.Reader.
func (r *reader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	s, ok := r.pool.Get().(*scratch)
	if !ok {
		s = new(scratch)
	}
	defer r.pool.Put(s)
	if err := r.ask(s, spans); err != nil {
		return err
	}
	if err := r.gatherer.Gather(ctx, draw, s.records, s.jobs); err != nil {
		return err
	}
	jobs := s.jobs
	for from, to := 0, 0; from < len(spans); from = to {
		to = end(spans, from)
		f := &r.schema.Fields[spans[from].Field]
		zeros, ones := jobs[0].Dst, []byte(nil)
		if jobs = jobs[1:]; f.Nullable {
			ones, jobs = jobs[0].Dst, jobs[1:]
		}
		for i := range to - from {
			s.set(f, &spans[from+i], i, zeros, ones)
		}
	}
	return use()
}

// end returns the end of the spans of one field that begin at an index.
func end(spans []source.Span, from int) int {
	to := from + 1
	for to < len(spans) && spans[to].Field == spans[from].Field {
		to++
	}
	return to
}

// ask lists the records of all spans, and a job for the spans of each field, or two
// if the field may hold nulls.
func (r *reader) ask(s *scratch, spans []source.Span) error {
	s.records, s.jobs = s.records[:0], s.jobs[:0]
	size, elements := 0, 0
	for i := range spans {
		if _, ok := r.parts[spans[i].Field]; !ok {
			return status.Errorf(status.InvalidArgument, "source", "field %d is not among the fields of the reader", spans[i].Field)
		}
		if spans[i].Record < 0 {
			return status.Errorf(status.OutOfRange, "source", "there is no record %d", spans[i].Record).With("record", spans[i].Record)
		}
		s.records = append(s.records, spans[i].Record)
		f := &r.schema.Fields[spans[i].Field]
		size += f.RowBytes()
		if f.Nullable {
			size += f.RowBytes()
			elements += f.RowBytes() / f.Type.Size()
		}
	}
	s.rows = slices.Grow(s.rows[:0], size)[:size]
	s.nulls = slices.Grow(s.nulls[:0], elements)
	rest := s.rows
	for from, to := 0, 0; from < len(spans); from = to {
		to = end(spans, from)
		f := &r.schema.Fields[spans[from].Field]
		part, n := r.parts[spans[from].Field], (to-from)*f.RowBytes()
		s.jobs = append(s.jobs, source.Job{Part: part, Rows: [2]int{from, to}, Dst: rest[:n:n]})
		if rest = rest[n:]; f.Nullable {
			s.jobs = append(s.jobs, source.Job{Part: part + 1, Rows: [2]int{from, to}, Dst: rest[:n:n]})
			rest = rest[n:]
		}
	}
	return nil
}

// set sets the row of a span, which is row i of the gathered rows. An element is null
// if the gathers with zeros and ones in place of nulls differ there.
func (s *scratch) set(f *source.Field, span *source.Span, i int, zeros, ones []byte) {
	n, size := f.RowBytes(), f.Type.Size()
	row := zeros[i*n : (i+1)*n : (i+1)*n]
	span.Row = row
	if ones == nil || bytes.Equal(row, ones[i*n:(i+1)*n]) {
		return
	}
	from, null := len(s.nulls), 0
	for at := 0; at < n; at += size {
		differs := !bytes.Equal(row[at:at+size], ones[i*n+at:i*n+at+size])
		s.nulls = append(s.nulls, differs)
		if differs {
			null++
		}
	}
	if null*size == n {
		span.Row = nil
		return
	}
	span.Nulls = s.nulls[from:len(s.nulls):len(s.nulls)]
}

// Ahead implements source.Reader.
func (r *reader) Ahead(draw source.Draw, records []int64) { r.gatherer.Ahead(draw, records) }

// Close implements source.Reader.
func (r *reader) Close() error { return r.gatherer.Close() }
