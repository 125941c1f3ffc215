package view_test

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/status"
)

// nullable is a source whose field "n" has nulls. It counts checks.
type nullable struct {
	calls   *source.Calls
	records int64
	checked [][2]int64
	uneven  int64 // a check fails at this record; -1 for none
}

func newNullable(records int64) *nullable {
	return &nullable{calls: source.NewCalls("test", "dataset", nil), records: records, uneven: -1}
}

func (s *nullable) Schema() source.Schema {
	return source.Schema{
		Fields: []source.Field{
			{Name: "n", Type: dtype.Int32, Shape: []int{2}, Nullable: true},
			{Name: "m", Type: dtype.Int32, Shape: []int{2}},
			{Name: "group", Type: dtype.Int64},
		},
		Skipped: []source.Skipped{{Name: "text", Type: "utf8", Reason: "its rows have different lengths"}},
	}
}

func (s *nullable) Len() int64 { return s.records }

func (s *nullable) Fingerprint(context.Context) (f source.Fingerprint, err error) {
	if err := s.calls.Enter(); err != nil {
		return f, err
	}
	defer s.calls.Leave()
	return source.Fingerprint{7, byte(s.records)}, nil
}

func (s *nullable) Facts() source.Facts {
	return source.Facts{Coverage: func() (hashed, of int64) { return 3, 4 }, Check: s.check}
}

// check finds the uneven record in field "m".
func (s *nullable) check(_ context.Context, fields []int, start, stop int64) error {
	s.checked = append(s.checked, [2]int64{start, stop})
	if start <= s.uneven && s.uneven < stop && slices.Contains(fields, 1) {
		return status.Errorf(status.InvalidArgument, "test", "record %d is uneven", s.uneven)
	}
	return nil
}

func (s *nullable) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := s.calls.Enter(); err != nil {
		return nil, err
	}
	defer s.calls.Leave()
	return cut.Gatherer(nullableReader{s: s}, s.Schema(), parts)
}

func (s *nullable) Reader(fields []int) (source.Reader, error) {
	if err := s.calls.Enter(); err != nil {
		return nil, err
	}
	defer s.calls.Leave()
	return cut.Reader(s, fields)
}

func (s *nullable) Close() error { return s.calls.Close(0) }

// row returns a row with zeros for nulls. Every third row of "n" is null, and so is
// the first element of every fifth. The field "group" changes at each multiple of 6.
func (s *nullable) row(field int, record int64) (row []byte, nulls []bool) {
	switch {
	case field == 2:
		return binary.LittleEndian.AppendUint64(nil, uint64(record/6)), nil
	case field == 0 && record%3 == 0:
		return nil, nil
	}
	row = binary.LittleEndian.AppendUint32(nil, uint32(10*record+int64(field)))
	row = binary.LittleEndian.AppendUint32(row, uint32(10*record+5))
	if field == 0 && record%5 == 0 {
		clear(row[:4])
		nulls = []bool{true, false}
	}
	return row, nulls
}

type nullableReader struct {
	source.FixedReader
	s *nullable
}

func (r nullableReader) Read(ctx context.Context, _ source.Draw, spans []source.Span, use func() error) error {
	if err := r.s.calls.Enter(); err != nil {
		return err
	}
	defer r.s.calls.Leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range spans {
		span := &spans[i]
		if span.Record < 0 || span.Record >= r.s.records {
			return status.Errorf(status.OutOfRange, "test", "record %d", span.Record)
		}
		span.Row, span.Nulls = r.s.row(span.Field, span.Record)
	}
	return use()
}

func (nullableReader) Ahead(source.Draw, []int64) {}
func (nullableReader) Close() error               { return nil }
