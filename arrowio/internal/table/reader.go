package table

import (
	"context"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// rowReader implements source.Reader for some fields of a table.
type rowReader struct {
	table   *Table
	fields  []*readField
	numbers []int     // the fields
	pool    sync.Pool // has *readState

	lengthsAtOnce int // the number of records with offsets that are read together
}

// readField is a field that is read.
type readField struct {
	number  int
	field   *arrowtype.Field
	column  *buffers.Column
	varying int // outer levels of lists that may have any length
	each    int // elements of an array in an element of the level below these, or in a row
}

func newRowReader(t *Table, fields []int, columns []*buffers.Column) *rowReader {
	r := &rowReader{table: t, numbers: fields, lengthsAtOnce: lengthsAtOnce}
	if t.countEncoded() > 0 {
		r.lengthsAtOnce = decodedLengthsAtOnce
	}
	for k, n := range fields {
		r.fields = append(r.fields, newReadField(n, t.Fields[n], columns[k]))
	}
	r.pool.New = func() any {
		s := &readState{files: files{table: t}}
		s.traversal.readState = s
		return s
	}
	return r
}

func newReadField(number int, f *arrowtype.Field, c *buffers.Column) *readField {
	each := f.RowElements()
	if f.Lists() > f.Ragged {
		each = int(f.Elements(1))
	}
	return &readField{number, f, c, f.Lists(), each}
}

// Reader returns a reader of whole rows of some fields.
func (t *Table) Reader(fields []int) (source.Reader, error) {
	if err := t.Calls.Enter(); err != nil {
		return nil, err
	}
	defer t.Calls.Leave()
	if err := t.Schema.CheckFields(fields); err != nil {
		return nil, err
	}
	columns, err := t.load(fields)
	if err != nil {
		return nil, err
	}
	return newRowReader(t, fields, columns), nil
}

// readState is the working memory of one call of Read or Ahead.
type readState struct {
	files
	ctx       context.Context // ends with the context of the gather, or when the table is closed
	located   []located       // where each span is
	spans     []source.Span   // in a call of Lengths
	firsts    []int           // in a call of Lengths: the first record of each span; then the number of records
	ahead     []int32         // encoded record batches of a call of Ahead
	leases    []*resident.Lease
	scratch   arena[byte]
	nulls     arena[bool]
	counts    arena[int64]
	lists     arena[[]int64]
	traversal traversal
}

// located is the position of a record.
type located struct {
	batch int32
	row   int64   // in the batch
	base  uintptr // address of the batch's file; 0 if its bytes must be acquired
}

// release releases the leases.
func (s *readState) release() {
	for _, l := range s.leases {
		l.Release()
	}
	clear(s.leases)
	s.leases = s.leases[:0]
}

// reset releases the leases, and makes the memory ready for the next call.
func (s *readState) reset() {
	s.release()
	s.ctx, s.traversal.spans, s.traversal.held = nil, nil, 0
	s.scratch.reset()
	s.nulls.reset()
	s.counts.reset()
	clear(s.lists.all)
	s.lists.reset()
	s.files.reset()
}

// Read implements source.Reader.
func (r *rowReader) Read(ctx context.Context, _ source.Draw, spans []source.Span, use func() error) error {
	if err := r.table.Calls.Enter(); err != nil {
		return err
	}
	defer r.table.Calls.Leave()
	if err := status.Ended("arrowio", "the gather", ctx.Err()); err != nil {
		return err
	}
	s := r.pool.Get().(*readState)
	defer r.pool.Put(s)
	defer s.reset()
	var stop func()
	s.ctx, stop = r.table.Calls.Join(ctx)
	defer stop()
	if err := s.locate(spans); err != nil {
		return err
	}
	r.fetch(s)
	return s.guarded(func() error {
		if err := r.rows(s, spans); err != nil {
			return err
		}
		return r.table.inFile(use())
	})
}

// fetch asks for the stored bytes of the encoded record batches of a call.
func (r *rowReader) fetch(s *readState) {
	if r.table.Fetch == nil || !s.encoded {
		return
	}
	s.ahead = s.ahead[:0]
	for _, l := range s.located {
		if r.table.encoded(l.batch) {
			s.ahead = append(s.ahead, l.batch)
		}
	}
	slices.Sort(s.ahead)
	r.table.Fetch(slices.Compact(s.ahead), r.numbers)
}

// Lengths implements source.Reader.
func (r *rowReader) Lengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	if err := r.table.Calls.Enter(); err != nil {
		return err
	}
	defer r.table.Calls.Leave()
	if err := status.Ended("arrowio", "the gather", ctx.Err()); err != nil {
		return err
	}
	f := r.field(field)
	switch {
	case f == nil:
		return r.unknown(field)
	case f.varying == 0:
		return source.FixedReader{}.Lengths(ctx, draw, field, records, out)
	}
	s := r.pool.Get().(*readState)
	defer r.pool.Put(s)
	defer s.reset()
	var stop func()
	s.ctx, stop = r.table.Calls.Join(ctx)
	defer stop()
	for from := 0; from < len(records); from += r.lengthsAtOnce {
		to := min(from+r.lengthsAtOnce, len(records))
		s.list(f, records[from:to])
		if err := s.locate(s.spans); err != nil {
			return err
		}
		if err := s.guarded(func() error { return s.lengths(f, s.spans, s.located, out[from:to]) }); err != nil {
			return err
		}
		s.release()
	}
	return nil
}

// The values of rowReader.lengthsAtOnce. What 4,096 records need stays in the
// processor's cache, which takes a quarter of the time. Batches that are decoded should not be
// decoded several times.
const (
	lengthsAtOnce        = 4 << 10
	decodedLengthsAtOnce = 64 << 10
)

// unknown returns the error for a field that the reader was not made for.
func (r *rowReader) unknown(field int) error {
	return status.Errorf(status.InvalidArgument, "arrowio", "field %d is not among the fields of the reader", field)
}

// rows finds the rows of the spans, field by field.
func (r *rowReader) rows(s *readState, spans []source.Span) error {
	for from, to := 0, 0; from < len(spans); from = to {
		field := spans[from].Field
		for to < len(spans) && spans[to].Field == field {
			to++
		}
		f := r.field(field)
		if f == nil {
			return r.unknown(field)
		}
		if err := s.rows(f, spans[from:to], s.located[from:to]); err != nil {
			return err
		}
	}
	return nil
}

func (r *rowReader) field(number int) *readField {
	for _, f := range r.fields {
		if f.number == number {
			return f
		}
	}
	return nil
}

// locate finds batch, row and file of every span.
func (s *readState) locate(spans []source.Span) error {
	s.located = s.located[:0]
	for i := range spans {
		record := spans[i].Record
		if record < 0 || record >= s.table.Index.Len() {
			return s.table.outOfRange(record)
		}
		batch, row := s.table.Index.Locate(record)
		s.located = append(s.located, located{batch, row, s.touch(batch)})
	}
	return nil
}

// Ahead implements source.Reader. Only ranges known from metadata can be read ahead:
// values, and the offsets of lists, but not what the offsets point to. Encoded record
// batches are decoded ahead.
func (r *rowReader) Ahead(_ source.Draw, records []int64) {
	t := r.table
	if t.Store == nil || t.Calls.Enter() != nil {
		return
	}
	defer t.Calls.Leave()
	s := r.pool.Get().(*readState)
	defer r.pool.Put(s)
	defer s.reset()
	s.traversal.pieces, s.ahead = s.traversal.pieces[:0], s.ahead[:0]
	for _, record := range records {
		if record < 0 || record >= t.Index.Len() {
			continue
		}
		batch, row := t.Index.Locate(record)
		if t.encoded(batch) {
			s.ahead = append(s.ahead, batch)
			continue
		}
		if s.touch(batch) != 0 {
			continue
		}
		for _, f := range r.fields {
			if f = f.storedIn(batch); f.column != nil {
				s.traversal.pieces = append(s.traversal.pieces, f.ahead(int(t.file(batch)), batch, row))
			}
		}
	}
	if len(s.traversal.pieces) > 0 {
		t.Store.Ahead(s.traversal.pieces)
	}
	if len(s.ahead) > 0 {
		slices.Sort(s.ahead)
		t.Units.DecodeAhead(slices.Compact(s.ahead), r.numbers)
	}
}

// ahead returns the range of a row in the data buffer of the first level that has
// one.
func (f *readField) ahead(file int, batch int32, row int64) resident.Span {
	n, count := 0, int64(1)
	for ; f.field.Levels[n].Buffer().Bits == 0; n++ {
		row, count, _ = f.field.List(n).Children(row, count, nil)
	}
	from, length := f.field.Levels[n].Buffer().Bytes(row, count)
	return resident.Span{File: file, Offset: f.column.Planes[n].Data[batch] + from, Length: int(length)}
}

// Close implements source.Reader.
func (r *rowReader) Close() error { return nil }

// files lists the files that one call reads from.
type files struct {
	table   *Table
	touched []int32   // each once
	seen    []bool    // by file: it is touched
	base    []uintptr // by file: its address, 0 if it is not in memory
	encoded bool      // some file has to be decoded
}

// touch adds the file of a record batch to the touched files, and returns its
// address. The address is 0 if the file is not in memory, or if the table has no
// files.
func (f *files) touch(batch int32) uintptr {
	if f.table.Store == nil {
		return 0
	}
	file := f.table.file(batch)
	if int(file) < len(f.seen) && f.seen[file] {
		return f.base[file]
	}
	for int(file) >= len(f.seen) {
		f.seen, f.base = append(f.seen, false), append(f.base, 0)
	}
	f.seen[file] = true
	f.touched = append(f.touched, file)
	base, ok := f.table.Store.Base(file)
	if !ok {
		base = 0
	}
	f.base[file] = base
	f.encoded = f.encoded || f.table.encoded(batch)
	return base
}

func (f *files) reset() {
	for _, file := range f.touched {
		f.seen[file] = false
	}
	f.touched, f.encoded = f.touched[:0], false
}

// check makes sure that no touched file has changed since it was opened.
func (f *files) check() error {
	if f.table.Store == nil {
		return nil
	}
	return f.table.Store.Check(f.touched)
}

// guarded calls read, which may access mapped files. If a file has already shrunk,
// guarded fails without the call: access to the missing pages raises a signal, which
// becomes an error only if no other code has replaced Go's signal handler.
func (f *files) guarded(read func() error) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.table.Store != nil {
		f.table.Store.Arm()
	}
	err := guard.Fault(read, f.fault)
	if gone := f.check(); gone != nil {
		return gone // the bytes that were read may be zeros, and err a consequence
	}
	return err
}

// fault returns the error for memory that vanished during a read.
func (f *files) fault(cause any) error {
	if err := f.check(); err != nil {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "the data could not be read from their mapping: %v", cause).
		WithHint("the disk failed, or a file was made shorter while it was open")
}

// arena allocates zeroed memory. After a reset it uses the same memory again.
type arena[T any] struct{ all, free []T }

func (a *arena[T]) take(n int) []T {
	if len(a.free) < n {
		a.all = make([]T, max(n, 2*len(a.all), 4<<10))
		a.free = a.all
	}
	out := a.free[:n:n]
	a.free = a.free[n:]
	clear(out)
	return out
}

func (a *arena[T]) reset() { a.free = a.all }
