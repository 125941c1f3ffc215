// Package synthetic is a dataset for tests. A formula computes every element from
// the field, the record and the index in the row. Rows of fields with one ragged
// dimension have 0 to 9 elements. If the name of a field begins with "drawn", its rows also depend on
// the draw. So a test can compare batches without stored data, with any number of records.
//
// The source counts its calls. A hook can simulate a disk: it may delay, fail or
// panic.
package synthetic

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/status"
)

// Source is a dataset of synthetic records. Set the hook before use.
type Source struct {
	// Hook, if set, runs at the start of every Gather with its records.
	Hook func(ctx context.Context, records []int64) error

	records int64
	fields  []source.Field

	mu     sync.Mutex
	counts Counts
	closed bool
}

// Counts holds the numbers of calls of a source.
type Counts struct {
	Gathers   int                 // calls of Gather
	Rows      map[int64]int       // times each record was asked for, with -1 for padding
	Ahead     map[int64]int       // times each record was announced
	Draws     map[source.Draw]int // how many records were announced for each draw
	Gatherers int                 // opened and not closed
	Parts     [][]source.Part     // jobs of every gatherer
}

// New returns a dataset with these fields and a number of records.
func New(records int64, fields ...source.Field) *Source {
	return &Source{records: records, fields: fields, counts: newCounts()}
}

func newCounts() Counts {
	return Counts{Rows: map[int64]int{}, Ahead: map[int64]int{}, Draws: map[source.Draw]int{}}
}

// Value returns the number of an element. The flat index counts the row's
// elements in C order.
func Value(field string, record int64, element int) uint32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(field))
	x := h.Sum64() ^ uint64(record)*0x9e3779b97f4a7c15 ^ uint64(element)*0xbf58476d1ce4e5b9
	x ^= x >> 31
	x *= 0x94d049bb133111eb
	return uint32(x >> 33) // 31 bits: every 64-bit integer can be narrowed
}

// Length returns the length of the row of a ragged field: 0 to 9, or -1 for null if the
// field is nullable.
func Length(f source.Field, record int64) int64 {
	v := Value(f.Name, record, -1)
	if f.Nullable && v%5 == 0 {
		return -1
	}
	return int64((v >> 8) % 10)
}

// Row returns the elements of a row; nil for a null row of a ragged field.
func Row(f source.Field, record int64) []byte {
	size := f.RowBytes()
	if f.Ragged > 0 {
		length := Length(f, record)
		if length < 0 {
			return nil
		}
		size *= int(length)
	}
	row := make([]byte, size)
	for e, n := 0, f.Type.Size(); e*n < len(row); e++ {
		Put(row[e*n:], f.Type, Value(f.Name, record, e))
	}
	return row
}

// In returns the field that has the rows of a field in a draw. It is the field itself, unless its name
// begins with "drawn".
func In(draw source.Draw, f source.Field) source.Field {
	if strings.HasPrefix(f.Name, "drawn") {
		f.Name = fmt.Sprint(f.Name, draw)
	}
	return f
}

// Put writes a number as an element of a type.
func Put(dst []byte, t dtype.Type, v uint32) {
	switch t {
	case dtype.Bool:
		dst[0] = byte(v & 1)
	case dtype.Int64, dtype.Uint64:
		binary.LittleEndian.PutUint64(dst, uint64(v))
	case dtype.Float32, dtype.Complex64:
		clear(dst[:t.Size()])
		binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(v>>8)))
	case dtype.Float64, dtype.Complex128:
		clear(dst[:t.Size()])
		binary.LittleEndian.PutUint64(dst, math.Float64bits(float64(v>>8)))
	default:
		for i := range t.Size() {
			dst[i] = byte(v >> (8 * i))
		}
	}
}

// Schema lists the fields.
func (s *Source) Schema() source.Schema { return source.Schema{Fields: s.fields} }

// Len returns the number of records.
func (s *Source) Len() int64 { return s.records }

// Facts says that rows of fields that depend on the draw cannot be kept. Nothing more is known.
func (s *Source) Facts() source.Facts {
	return source.Facts{Version: func() (string, error) {
		for _, f := range s.fields {
			if In(source.Draw{}, f).Name != f.Name {
				return "", status.Errorf(status.Unsupported, "synthetic", "the rows of %q depend on the draw", f.Name).WithHint("keep the dataset below")
			}
		}
		return "", nil
	}}
}

// Fingerprint depends on the fields and the number of records.
func (s *Source) Fingerprint(context.Context) (source.Fingerprint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return source.Fingerprint{}, errClosed()
	}
	h := fnv.New128a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(s.records)))
	for _, f := range s.fields {
		_, _ = h.Write([]byte(f.Name))
	}
	return source.Fingerprint(h.Sum(nil)), nil
}

// Counts returns the calls since the last Counts. Open gatherers stay counted.
func (s *Source) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	s.counts = newCounts()
	s.counts.Gatherers = c.Gatherers
	return c
}

// Close rejects later gathers.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *Source) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Gatherer opens a gatherer.
func (s *Source) Gatherer(parts []source.Part) (source.Gatherer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed()
	}
	g, err := cut.Gatherer(&reader{s: s}, s.Schema(), parts)
	if err != nil {
		return nil, err
	}
	s.counts.Gatherers++
	s.counts.Parts = append(s.counts.Parts, parts)
	return &gatherer{g, s}, nil
}

// Reader opens a reader, which counts as a gatherer. Its reads are not counted.
func (s *Source) Reader(fields []int) (source.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed()
	}
	if err := s.Schema().CheckFields(fields); err != nil {
		return nil, err
	}
	s.counts.Gatherers++
	return &reader{s: s, fields: fields}, nil
}

func errClosed() error { return status.New(status.InvalidState, "synthetic", "the dataset is closed") }

// gatherer counts gathers and calls the hook before each of them.
type gatherer struct {
	source.Gatherer
	s *Source
}

func (g *gatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	if err := g.count(records); err != nil {
		return err
	}
	if g.s.Hook != nil {
		if err := g.s.Hook(ctx, records); err != nil {
			return err
		}
	}
	return g.Gatherer.Gather(ctx, draw, records, jobs)
}

func (g *gatherer) count(records []int64) error {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if g.s.closed {
		return errClosed()
	}
	g.s.counts.Gathers++
	for _, r := range records {
		if r < -1 || r >= g.s.records {
			return status.Errorf(status.OutOfRange, "synthetic", "there is no record %d", r)
		}
		g.s.counts.Rows[r]++
	}
	return nil
}

// reader computes rows.
type reader struct {
	source.FixedReader
	s      *Source
	fields []int // nil for all
}

// Read implements source.Reader.
func (r *reader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.s.isClosed() {
		return errClosed()
	}
	for i := range spans {
		span := &spans[i]
		if r.fields != nil && !slices.Contains(r.fields, span.Field) {
			return status.Errorf(status.InvalidArgument, "synthetic", "field %d is not among the fields of the reader", span.Field)
		}
		if span.Record < 0 || span.Record >= r.s.records {
			return status.Errorf(status.OutOfRange, "synthetic", "there is no record %d", span.Record)
		}
		span.Row = Row(In(draw, r.s.fields[span.Field]), span.Record)
	}
	return use()
}

// Lengths implements source.Reader.
func (r *reader) Lengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	f := r.s.fields[field]
	if f.Ragged == 0 {
		return r.FixedReader.Lengths(ctx, draw, field, records, out)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.s.isClosed() {
		return errClosed()
	}
	for i, record := range records {
		if record < 0 || record >= r.s.records {
			return status.Errorf(status.OutOfRange, "synthetic", "there is no record %d", record)
		}
		out[i] = Length(In(draw, f), record)
	}
	return nil
}

// Ahead implements source.Reader.
func (r *reader) Ahead(draw source.Draw, records []int64) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.counts.Draws[draw] += len(records)
	for _, record := range records {
		r.s.counts.Ahead[record]++
	}
}

// Close implements source.Reader.
func (r *reader) Close() error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.counts.Gatherers--
	return nil
}
