package table

import (
	"context"
	"errors"
	"sync"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/gather"
	"github.com/meshfeed/meshfeed/arrowio/internal/part"
	"github.com/meshfeed/meshfeed/core/guard"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Gatherer makes a gatherer of parts of the table's rows.
func (t *Table) Gatherer(parts []source.Part) (*Gatherer, error) {
	if err := t.Gate.Enter(); err != nil {
		return nil, err
	}
	defer t.Gate.Leave()
	g := &Gatherer{table: t, programs: make([]*part.Program, len(parts)), reader: make([]int, len(parts))}
	for i, p := range parts {
		if p.Field < 0 || p.Field >= len(t.Fields) {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "part %d takes field %d of %d", i, p.Field, len(t.Fields))
		}
		f := t.Fields[p.Field]
		var err error
		if g.programs[i], err = part.Compile(t.Schema.Fields[p.Field], f.packed(), p); err != nil {
			return nil, err
		}
		if g.reader[i], err = g.readerOf(p.Field); err != nil {
			return nil, err
		}
	}
	g.pool.New = func() any { return newStep(g) }
	return g, nil
}

// Gatherer implements source.Gatherer.
type Gatherer struct {
	table    *Table
	programs []*part.Program // of each part
	reader   []int           // of each part: which of readers finds its rows
	readers  []reader
	pool     sync.Pool // of *step
}

// reader finds the rows of one field.
type reader struct {
	number int
	field  *Field
	column *Column
	plain  bool // addresses follow from the metadata: no lists with offsets, no nulls, no dictionary
	stride int64
}

// readerOf gives the number of the field's reader.
func (g *Gatherer) readerOf(field int) (int, error) {
	for i := range g.readers {
		if g.readers[i].number == field {
			return i, nil
		}
	}
	c, err := g.table.column(field)
	if err != nil {
		return 0, err
	}
	f := g.table.Fields[field]
	r := reader{number: field, field: f, column: c, plain: true, stride: int64(f.bits(0))}
	if !f.packed() {
		r.stride /= 8
	}
	for i := range c.Planes {
		kind := f.Nodes[i].Kind
		if c.Planes[i].Valid != nil || c.Planes[i].Shift != nil || kind == List || kind == Coded {
			r.plain = false
		}
	}
	g.readers = append(g.readers, r)
	return len(g.readers) - 1, nil
}

// Gather implements source.Gatherer.
func (g *Gatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	if err := g.table.Gate.Enter(); err != nil {
		return err
	}
	defer g.table.Gate.Leave()
	if err := g.check(records, jobs); err != nil {
		return err
	}
	s := g.pool.Get().(*step)
	defer g.pool.Put(s)
	defer s.release()
	if err := s.locate(ctx, records); err != nil {
		return err
	}
	for i := range g.readers {
		if err := s.field(&g.readers[i], jobs); err != nil {
			return err
		}
	}
	return s.done()
}

// check makes sure that all jobs and records are in range.
func (g *Gatherer) check(records []int64, jobs []source.Job) error {
	for i, j := range jobs {
		if j.Part < 0 || j.Part >= len(g.programs) {
			return status.Errorf(status.InvalidArgument, "arrowio", "job %d is for part %d of %d", i, j.Part, len(g.programs))
		}
		n, width := j.Rows[1]-j.Rows[0], g.programs[j.Part].Bytes()
		if j.Rows[0] < 0 || n < 0 || j.Rows[1] > len(records) {
			return status.Errorf(status.InvalidArgument, "arrowio", "job %d is for rows %v of %d records", i, j.Rows, len(records))
		}
		if n*width != len(j.Dst) {
			return status.Errorf(status.InvalidArgument, "arrowio", "job %d has %d bytes for %d rows of %d bytes", i, len(j.Dst), n, width)
		}
	}
	total := uint64(g.table.Index.Len())
	for _, r := range records {
		if uint64(r) >= total && r != -1 {
			return status.Errorf(status.OutOfRange, "arrowio", "record %d of %d", r, total).With("record", r)
		}
	}
	return nil
}

// Ahead implements source.Gatherer.
func (g *Gatherer) Ahead(records []int64) {}

// Close implements source.Gatherer.
func (g *Gatherer) Close() error { return nil }

// step is the scratch memory of one gather.
type step struct {
	g       *Gatherer
	ctx     context.Context
	records []int64
	batch   []int32   // of each record; -1 for a row of zeros
	row     []int64   // in the batch
	base    []uintptr // of the batch's file; 0 where spans must be acquired
	address []uintptr // of the field's row
	jobs    []gather.Job
	files   []int32 // that are touched, each once
	direct  bool    // no span needs to be acquired
	single  bool    // there is one batch and all its bytes are in memory
}

func newStep(g *Gatherer) *step { return &step{g: g} }

// release forgets what belongs to the caller.
func (s *step) release() {
	s.ctx, s.records = nil, nil
	clear(s.jobs[:cap(s.jobs)])
}

// locate finds batch and row of every record.
func (s *step) locate(ctx context.Context, records []int64) error {
	if err := ctx.Err(); err != nil {
		return status.Errorf(status.CodeOf(err), "arrowio", "the gather was ended: %w", err)
	}
	n := len(records)
	if cap(s.batch) < n {
		s.batch, s.row, s.base, s.address = make([]int32, n), make([]int64, n), make([]uintptr, n), make([]uintptr, n)
	}
	s.ctx, s.records = ctx, records
	s.batch, s.row, s.base, s.address = s.batch[:n], s.row[:n], s.base[:n], s.address[:n]
	x := s.g.table.Index
	if batch, ok := x.Single(); ok {
		for i, r := range records {
			s.batch[i], s.row[i] = batch, r
			if r < 0 {
				s.batch[i] = -1
			}
		}
	} else {
		for i, r := range records {
			if r < 0 {
				s.batch[i] = -1
				continue
			}
			s.batch[i], s.row[i] = x.Locate(r)
		}
	}
	s.bases()
	return nil
}

// bases finds where the records' files begin.
func (s *step) bases() {
	t := s.g.table
	s.direct = true
	s.files = s.files[:0]
	if t.Store == nil {
		clear(s.base)
		return
	}
	last, base := int32(-1), uintptr(0)
	for i, b := range s.batch {
		if b < 0 {
			continue
		}
		if file := t.file(b); file != last {
			last = file
			base, _ = t.Store.Base(file)
			s.direct = s.direct && base != 0
			s.files = append(s.files, file)
		}
		s.base[i] = base
	}
}

// field does all jobs of one field.
func (s *step) field(r *reader, jobs []source.Job) error {
	s.jobs = s.jobs[:0]
	for _, j := range jobs {
		if &s.g.readers[s.g.reader[j.Part]] == r {
			s.jobs = append(s.jobs, gather.Job{Program: s.g.programs[j.Part].Program, Rows: j.Rows, Dst: j.Dst})
		}
	}
	if len(s.jobs) == 0 {
		return nil
	}
	return guard.Fault(func() error {
		s.plain(r)
		return s.describe(r, gather.Run(s.address, s.jobs, gather.Options{Streaming: s.streaming()}))
	}, s.fault)
}

// plain computes the addresses of rows that follow from metadata.
func (s *step) plain(r *reader) {
	data := r.column.Planes[len(r.column.Planes)-1].Data
	packed := r.field.packed()
	for i, b := range s.batch {
		switch {
		case b < 0:
			s.address[i] = 0
		case packed:
			s.address[i] = gather.BitAddress(s.base[i]+uintptr(data[b]), s.row[i]*r.stride)
		default:
			s.address[i] = s.base[i] + uintptr(data[b]) + uintptr(s.row[i]*r.stride)
		}
	}
}

// ring is how many batches of a loader are likely to be in memory at once.
const ring = 4

// streaming says whether the jobs' bytes will have left the cache before they
// are used.
func (s *step) streaming() bool {
	bytes := 0
	for _, j := range s.jobs {
		bytes += len(j.Dst)
	}
	return gather.OutgrowsCache(ring * bytes)
}

// describe names field and record of a value that was out of range.
func (s *step) describe(r *reader, err error) error {
	var out *gather.RangeError
	if !errors.As(err, &out) {
		return err
	}
	record := s.records[out.Row]
	return status.Errorf(status.OutOfRange, "arrowio", "field %q: record %d holds %d, which %s cannot", r.field.Name, record, out.Value, out.To).
		WithHint("deliver the field as %v (in JAX: jax.config.update(\"jax_enable_x64\", True)), or store smaller values", r.field.Type).
		With("field", r.field.Name).With("record", record)
}

// fault is the error for memory that vanished under the gather.
func (s *step) fault(cause any) error {
	if err := s.done(); err != nil {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "the data could not be read from their mapping: %v", cause).
		WithHint("the disk failed, or a file was made shorter while it was open")
}

// done makes sure that no file has changed under the gather.
func (s *step) done() error {
	if s.g.table.Store == nil {
		return nil
	}
	return s.g.table.Store.Check(s.files)
}

// packed says whether the values are bits.
func (f *Field) packed() bool {
	last := f.Nodes[len(f.Nodes)-1]
	return last.Kind == Values && last.Size == 0
}

// address gives the address of the first byte of a slice.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
