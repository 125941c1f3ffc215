package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// padReader makes padded rows of the rows that the reader below reads.
type padReader struct {
	view   *pad
	below  source.Reader
	fields []int
	pool   sync.Pool // of *padState
}

// padState is the working memory of one Read.
type padState struct {
	below   []source.Span // for all spans but those of lengths
	records []int64       // of the spans of lengths
	lengths []int64
	rows    []byte
	nulls   []bool
}

// Read implements source.Reader.
func (r *padReader) Read(ctx context.Context, spans []source.Span, use func() error) error {
	return r.view.call(ctx, func(ctx context.Context) error {
		s, ok := r.pool.Get().(*padState)
		if !ok {
			s = new(padState)
		}
		defer r.pool.Put(s)
		defer func() { clear(s.below) }() // they refer to memory of the reader below
		if err := r.ask(s, spans); err != nil {
			return err
		}
		s.lengths = slices.Grow(s.lengths[:0], len(s.records))[:len(s.records)]
		if len(s.records) > 0 {
			if err := source.RowLengths(ctx, r.below, r.view.rows, r.view.number, s.records, s.lengths); err != nil {
				return err
			}
		}
		return r.below.Read(ctx, s.below, func() error {
			if err := r.fill(s, spans); err != nil {
				return err
			}
			return use()
		})
	})
}

// ask lists what the reader below must read.
func (r *padReader) ask(s *padState, spans []source.Span) error {
	s.below, s.records = s.below[:0], s.records[:0]
	for i := range spans {
		span := &spans[i]
		if !slices.Contains(r.fields, span.Field) {
			return status.Errorf(status.InvalidArgument, "view", "field %d is not among the fields of the reader", span.Field)
		}
		if err := r.view.checkExists(span.Record); err != nil {
			return err
		}
		if span.Field == r.view.number+1 {
			s.records = append(s.records, span.Record)
		} else {
			s.below = append(s.below, source.Span{Field: r.view.stored(span.Field), Record: span.Record})
		}
	}
	return nil
}

// fill sets the rows of the spans.
func (r *padReader) fill(s *padState, spans []source.Span) error {
	v := r.view
	width := v.options.Length * v.element.RowBytes()
	padded, elements := 0, 0
	for i := range s.below {
		if s.below[i].Field == v.number {
			padded++
			if s.below[i].Nulls != nil {
				elements += width / v.element.Type.Size()
			}
		}
	}
	s.rows = slices.Grow(s.rows[:0], padded*width+4*len(s.records))[:padded*width+4*len(s.records)]
	s.nulls = slices.Grow(s.nulls[:0], elements)[:elements]
	clear(s.nulls)
	rows, nulls, below, lengths := s.rows, s.nulls, s.below, s.lengths
	for i := range spans {
		span := &spans[i]
		if span.Field == v.number+1 {
			if lengths[0] > int64(v.options.Length) && !v.options.Truncate {
				return v.tooLong(span.Record, lengths[0])
			}
			n := min(max(lengths[0], 0), int64(v.options.Length))
			binary.LittleEndian.PutUint32(rows, uint32(n))
			span.Row, rows, lengths = rows[:4:4], rows[4:], lengths[1:]
			continue
		}
		from := &below[0]
		below = below[1:]
		if span.Field != v.number {
			span.Row, span.Nulls, span.Lists = from.Row, from.Nulls, from.Lists
			continue
		}
		span.Row, rows = rows[:width:width], rows[width:]
		if from.Nulls != nil {
			n := width / v.element.Type.Size()
			span.Nulls, nulls = nulls[:n:n], nulls[n:]
		}
		if err := v.padRow(span, from); err != nil {
			return err
		}
	}
	return nil
}

// padRow copies a row to a longer one, and pads it.
func (v *pad) padRow(to, from *source.Span) error {
	element := v.element.RowBytes()
	n := len(from.Row) / element
	if n > v.options.Length {
		if !v.options.Truncate {
			return v.tooLong(from.Record, int64(n))
		}
		n = v.options.Length
	}
	at := 0
	if v.options.Left {
		at = v.options.Length - n
	}
	copy(to.Row[at*element:], from.Row[:n*element])
	repeat(to.Row[:at*element], v.value)
	repeat(to.Row[(at+n)*element:], v.value)
	if to.Nulls == nil {
		return nil
	}
	each := element / v.element.Type.Size()
	copy(to.Nulls[at*each:], from.Nulls[:n*each])
	switch {
	case !slices.Contains(to.Nulls, true):
		to.Nulls = nil
	case !slices.Contains(to.Nulls, false):
		to.Row, to.Nulls = nil, nil
	}
	return nil
}

// repeat fills dst with copies of a value.
func repeat(dst, value []byte) {
	if len(bytes.TrimLeft(value, "\x00")) == 0 {
		clear(dst)
		return
	}
	for n := copy(dst, value); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// Lengths implements source.Reader, for fields that the view passes through.
func (r *padReader) Lengths(ctx context.Context, field int, records, out []int64) error {
	if r.view.made(field) {
		return source.FixedReader{}.Lengths(ctx, field, records, out)
	}
	return r.view.call(ctx, func(ctx context.Context) error {
		return r.below.Lengths(ctx, r.view.stored(field), records, out)
	})
}

// Ahead implements source.Reader.
func (r *padReader) Ahead(records []int64) {
	if r.view.calls.Enter() == nil {
		defer r.view.calls.Leave()
		r.below.Ahead(records)
	}
}

// Close implements source.Reader.
func (r *padReader) Close() error { return r.below.Close() }
