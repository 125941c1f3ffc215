package cut_test

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

const records = 23

// computed is a source of rows that a reader computes: element e of record r is
// 100*r + e. Record 3 is null, and so is element 1 of record 5.
type computed struct{ calls *source.Calls }

func newComputed() *computed { return &computed{source.NewCalls("test", "dataset", nil)} }

func (s *computed) Schema() source.Schema {
	return source.Schema{Fields: []source.Field{
		{Name: "numbers", Type: dtype.Int64, Shape: []int{2, 3}, Nullable: true},
		{Name: "number", Type: dtype.Int64, Nullable: true},
		{Name: "bytes", Type: dtype.Uint8, Shape: []int{70}},
	}}
}

func (s *computed) Len() int64 { return records }

func (s *computed) Facts() source.Facts { return source.Facts{} }

func (s *computed) Fingerprint(context.Context) (source.Fingerprint, error) {
	if err := s.calls.Enter(); err != nil {
		return source.Fingerprint{}, err
	}
	defer s.calls.Leave()
	return source.Fingerprint{1}, nil
}

func (s *computed) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := s.calls.Enter(); err != nil {
		return nil, err
	}
	defer s.calls.Leave()
	return cut.Gatherer(&reader{source: s}, s.Schema(), parts)
}

func (s *computed) Reader(fields []int) (source.Reader, error) {
	if err := s.calls.Enter(); err != nil {
		return nil, err
	}
	defer s.calls.Leave()
	if err := s.Schema().CheckFields(fields); err != nil {
		return nil, err
	}
	return &reader{source: s, fields: fields}, nil
}

func (s *computed) Close() error { return s.calls.Close(0) }

// reader destroys its rows after their use.
type reader struct {
	source.FixedReader
	source *computed
	fields []int // nil for all
	closed bool

	mu    sync.Mutex
	ahead []int64
}

func (r *reader) Read(ctx context.Context, _ source.Draw, spans []source.Span, use func() error) error {
	if err := r.source.calls.Enter(); err != nil {
		return err
	}
	defer r.source.calls.Leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range spans {
		span := &spans[i]
		if span.Row != nil || span.Nulls != nil {
			return status.New(status.Internal, "test", "a span is not empty")
		}
		if r.fields != nil && !slices.Contains(r.fields, span.Field) {
			return status.Errorf(status.InvalidArgument, "test", "field %d", span.Field)
		}
		if span.Record < 0 || span.Record >= records {
			return status.Errorf(status.OutOfRange, "test", "record %d", span.Record)
		}
		span.Row, span.Nulls = row(span.Field, span.Record)
	}
	defer func() {
		for i := range spans {
			for k := range spans[i].Row {
				spans[i].Row[k] = 0xDD
			}
		}
	}()
	return use()
}

func (r *reader) Ahead(_ source.Draw, records []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead = append(r.ahead, records...)
}

func (r *reader) Close() error {
	r.closed = true
	return nil
}

// row returns the bytes of a row and its nulls; no bytes for a row of nulls.
func row(field int, record int64) (out []byte, nulls []bool) {
	if field == 2 {
		for e := range 70 {
			out = append(out, byte(100*int(record)+e))
		}
		return out, nil
	}
	if record == 3 {
		return nil, nil
	}
	for e := range []int{6, 1}[field] {
		out = binary.LittleEndian.AppendUint64(out, uint64(100*record+int64(e)))
	}
	if record == 5 && field == 0 {
		nulls = make([]bool, 6)
		nulls[1] = true
		clear(out[8:16])
	}
	return out, nulls
}

// TestConformance runs the suite of all sources over a reader.
func TestConformance(t *testing.T) {
	sourcetest.Suite{
		Open: func(*testing.T) source.Source { return newComputed() },
		Row: func(field int, record int64) []byte {
			if out, _ := row(field, record); out != nil {
				return out
			}
			return make([]byte, 8*[]int{6, 1}[field])
		},
	}.Run(t)
}

// gathered is a source with readers that gather.
type gathered struct{ *computed }

func (s gathered) Reader(fields []int) (source.Reader, error) { return cut.Reader(s.computed, fields) }

// TestReader runs the suite of all sources over a reader of gathered rows. It finds the
// nulls of the source.
func TestReader(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) source.Source { return gathered{newComputed()} })

	r, err := gathered{newComputed()}.Reader([]int{1, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	spans := []source.Span{{Field: 0, Record: 3}, {Field: 0, Record: 5}, {Field: 1, Record: 3}, {Field: 1, Record: 5}, {Field: 0, Record: 4}}
	err = r.Read(t.Context(), source.Draw{}, spans, func() error {
		for i, null := range []bool{true, false, true, false, false} {
			if spans[i].Null() != null {
				t.Errorf("span %d is %+v", i, spans[i])
			}
		}
		if want := []bool{false, true, false, false, false, false}; !slices.Equal(spans[1].Nulls, want) || spans[4].Nulls != nil {
			t.Errorf("nulls %v and %v", spans[1].Nulls, spans[4].Nulls)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReaderOfRagged refuses a ragged field.
func TestReaderOfRagged(t *testing.T) {
	_, err := cut.Reader(words{newComputed()}, []int{0})
	if want := `source: field "text" is ragged, and its source only gathers rows of one shape`; status.CodeOf(err) != status.Unsupported || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// words is a source with a ragged field.
type words struct{ *computed }

func (words) Schema() source.Schema {
	return source.Schema{Fields: []source.Field{{Name: "text", Type: dtype.Uint8, Ragged: 1, Logical: "string"}}}
}

// TestFill replaces nulls inside rows, whole rows of nulls, and neither padding
// nor zeros. The blocks are converted and take only a part of the rows.
func TestFill(t *testing.T) {
	g, err := newComputed().Gatherer([]source.Part{
		{Field: 0, To: dtype.Int32, Fill: -1, Boxes: [][][2]int{{{0, 2}, {1, 2}}}},
		{Field: 1, Fill: -2, Boxes: [][][2]int{{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	list := []int64{5, -1, 3, 0}
	pairs, numbers := make([]byte, 4*4*2), make([]byte, 8*4)
	jobs := []source.Job{{Part: 0, Rows: [2]int{0, 4}, Dst: pairs}, {Part: 1, Rows: [2]int{0, 4}, Dst: numbers}}
	if err := g.Gather(t.Context(), source.Draw{}, list, jobs); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for i := 0; i < len(pairs); i += 4 {
		got = append(got, int64(int32(binary.LittleEndian.Uint32(pairs[i:]))))
	}
	for i := 0; i < len(numbers); i += 8 {
		got = append(got, int64(binary.LittleEndian.Uint64(numbers[i:])))
	}
	if want := []int64{-1, 504, 0, 0, -1, -1, 1, 4, 500, 0, -2, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestReaderBelow passes readahead and Close to the reader, and asks it only for
// rows that a job takes.
func TestReaderBelow(t *testing.T) {
	s := newComputed()
	r := &reader{source: s}
	g, err := cut.Gatherer(r, s.Schema(), []source.Part{{Field: 2, Boxes: [][][2]int{{{0, 1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	g.Ahead(source.Draw{}, []int64{7, -1, 8})
	if !slices.Equal(r.ahead, []int64{7, -1, 8}) {
		t.Errorf("announced %v", r.ahead)
	}
	dst := make([]byte, 1)
	outside := []int64{records, 2, records}
	if err := g.Gather(t.Context(), source.Draw{}, outside, []source.Job{{Rows: [2]int{1, 2}, Dst: dst}}); err != nil || dst[0] != 200 {
		t.Errorf("got %v, %v", dst, err)
	}
	if err := g.Close(); err != nil || !r.closed {
		t.Errorf("the reader is open, %v", err)
	}
}
