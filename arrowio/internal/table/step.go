package table

import (
	"context"
	"errors"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/gather"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// step is the scratch memory of one gather. All lists with an entry per record
// are parallel.
type step struct {
	g       *Gatherer
	ctx     context.Context
	records []int64
	place   []uint32  // of each record's batch in the index
	batch   []int32   // of each record; -1 for a row of zeros
	row     []int64   // in the batch
	base    []uintptr // of the batch's file; 0 where spans must be acquired
	address []uintptr // of the field's row

	files   []int32   // that are touched, each once
	seen    []bool    // by file: it is touched
	begin   []uintptr // by file: its address, 0 where it is not in memory
	origins origins   // nil while some file of the table is not in memory
	single  bool      // all follows from origins and lies in one batch: places are not asked for
	placed  bool      // place is filled in
	zeros   bool      // some record is -1
	direct  bool      // all files touched are in memory, to stay
	encoded bool      // some file has to be decoded

	walk walk
	jobs []gather.Job
	part []int // of each of jobs
}

func newStep(g *Gatherer) *step {
	s := &step{g: g}
	s.walk.s = s
	s.walk.copies.isNull = s.walk.copies.null
	return s
}

// release gives back what the gather held, and forgets what belongs to the
// caller.
func (s *step) release() {
	s.walk.release()
	s.ctx, s.records = nil, nil
	clear(s.jobs[:cap(s.jobs)])
	for _, f := range s.files {
		s.seen[f] = false
	}
	s.files = s.files[:0]
}

// locate finds batch and row of every record, as far as the fields ask for
// them.
func (s *step) locate(ctx context.Context, records []int64) error {
	if err := ctx.Err(); err != nil {
		return status.Errorf(status.CodeOf(err), "arrowio", "the gather was ended: %w", err)
	}
	g, n := s.g, len(records)
	if cap(s.address) < n {
		s.address, s.place = make([]uintptr, n), make([]uint32, n)
	}
	s.ctx, s.records, s.address, s.place = ctx, records, s.address[:n], s.place[:n]
	s.direct, s.encoded = true, false
	s.origins = g.straight()
	s.placed, s.single = false, false
	if g.plain && s.origins != nil {
		_, s.single = g.table.Index.Single()
		s.touchPlaces()
		return nil
	}
	s.places()
	s.rows()
	s.bases()
	return nil
}

// places gives the places of all records, which are looked up when they are
// first asked for.
func (s *step) places() []uint32 {
	if !s.placed {
		s.g.table.Index.locate(s.records, s.place)
		s.placed = true
	}
	return s.place[:len(s.records)]
}

// rows finds batch and row of every record from the place of the batch.
func (s *step) rows() {
	n, x := len(s.records), s.g.table.Index
	if cap(s.batch) < n {
		s.batch, s.row, s.base = make([]int32, n), make([]int64, n), make([]uintptr, n)
	}
	s.batch, s.row, s.base = s.batch[:n], s.row[:n], s.base[:n]
	for i, r := range s.records {
		s.batch[i] = -1
		if r >= 0 {
			s.batch[i], s.row[i] = x.number(int(s.place[i])), r-x.first[s.place[i]]
		}
	}
}

// touchPlaces notes which files are used.
func (s *step) touchPlaces() {
	t := s.g.table
	if t.Store == nil {
		return
	}
	if s.single || t.Files == nil {
		batch, _ := t.Index.Single()
		s.touched(t.File(batch))
		return
	}
	places := uint32(t.Index.places())
	for _, p := range s.places() {
		if p < places {
			s.touched(t.Files[t.Index.number(int(p))])
		}
	}
}

// touched notes that a file is used.
func (s *step) touched(file int32) {
	if s.g.table.Store != nil && (int(file) >= len(s.seen) || !s.seen[file]) {
		s.touch(file)
	}
}

// bases finds where the records' files begin.
func (s *step) bases() {
	t := s.g.table
	if t.Store == nil {
		clear(s.base)
		return
	}
	for i, b := range s.batch {
		if b < 0 {
			continue
		}
		file := t.File(b)
		s.touched(file)
		s.base[i] = s.begin[file]
	}
}

// touch notes that a file is used, and where it begins if it is in memory.
func (s *step) touch(file int32) {
	store := s.g.table.Store
	for int(file) >= len(s.seen) {
		s.seen, s.begin = append(s.seen, false), append(s.begin, 0)
	}
	s.seen[file] = true
	s.files = append(s.files, file)
	base, ok := store.Base(file)
	if !ok {
		base, s.direct = 0, false
	}
	s.begin[file] = base
	s.encoded = s.encoded || store.Encoded(file)
}

// readAll does all jobs.
func (s *step) readAll(jobs []source.Job) error {
	for k := range s.g.readers {
		if err := s.read(k, jobs); err != nil {
			return err
		}
	}
	return nil
}

// read does all jobs of the k-th reader's field.
func (s *step) read(k int, jobs []source.Job) error {
	s.jobs, s.part = s.jobs[:0], s.part[:0]
	for _, j := range jobs {
		if s.g.reader[j.Part] == k {
			s.jobs = append(s.jobs, gather.Job{Program: s.g.programs[j.Part].Program, Rows: j.Rows, Dst: j.Dst})
			s.part = append(s.part, j.Part)
		}
	}
	if len(s.jobs) == 0 {
		return nil
	}
	return guard.Fault(func() error { return s.copy(k) }, s.fault)
}

// copy finds the rows of a field and copies them.
func (s *step) copy(k int) error {
	r, o := &s.g.readers[k], gather.Options{Streaming: s.streaming()}
	if s.origins != nil && r.plain {
		if s.scalars(s.origins[k], uintptr(r.stride)) {
			return nil
		}
		s.multiply(s.origins[k], uintptr(r.stride))
		o.Whole = !s.zeros
		return s.describe(r, gather.Run(s.address, s.jobs, o))
	}
	if err := s.walk.addresses(r); err != nil {
		return err
	}
	err := gather.Run(s.address, s.jobs, o)
	if err == nil {
		s.walk.fill()
	}
	s.walk.release()
	return s.describe(r, err)
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
	e := status.Errorf(status.OutOfRange, "arrowio", "field %q: record %d holds %d, which %s cannot", r.field.Name, record, out.Value, out.To).
		WithHint("deliver the field as %v (in JAX: jax.config.update(\"jax_enable_x64\", True)), or store smaller values", r.field.Type).
		With("field", r.field.Name).With("record", record)
	if s.g.table.Store == nil {
		return e
	}
	batch, _ := s.g.table.Index.Locate(record)
	return s.g.table.Store.Named(batch, e)
}

// fault is the error for memory that vanished under the gather.
func (s *step) fault(cause any) error {
	if err := s.check(); err != nil {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "the data could not be read from their mapping: %v", cause).
		WithHint("the disk failed, or a file was made shorter while it was open")
}

// check makes sure that no file has changed under the gather.
func (s *step) check() error {
	if s.g.table.Store == nil {
		return nil
	}
	return s.g.table.Store.Check(s.files)
}

// ahead adds the spans of a field that metadata tell to walk.spans.
func (s *step) ahead(r *reader) {
	bits, n := int64(1), 0
	for r.field.Nodes[n].Kind == Fixed {
		bits *= int64(r.field.Nodes[n].Size)
		n++
	}
	node, extra := &r.field.Nodes[n], int64(0)
	switch {
	case node.Kind == List:
		bits, extra = bits*int64(8*node.Width), int64(node.Width)
	case node.Kind == Coded:
		bits *= int64(8 * node.Width)
	case node.Size > 0:
		bits *= int64(8 * node.Size)
	}
	t := s.g.table
	for i, b := range s.batch {
		if b >= 0 && s.base[i] == 0 && !t.Store.Encoded(t.File(b)) {
			from := s.row[i] * bits
			s.walk.spans = append(s.walk.spans, resident.Span{
				File: int(t.File(b)), Offset: r.column.Planes[n].Data[b] + from>>3, Length: int((from+bits+7)>>3 - from>>3 + extra)})
		}
	}
}
