package table

import (
	"context"
	"errors"

	"github.com/meshfeed/meshfeed/arrowio/internal/gather"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/guard"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// step is the scratch memory of one gather. All lists with an entry per record
// are parallel.
type step struct {
	g       *Gatherer
	ctx     context.Context
	records []int64
	batch   []int32   // of each record; -1 for a row of zeros
	row     []int64   // in the batch
	base    []uintptr // of the batch's file; 0 where spans must be acquired
	address []uintptr // of the field's row

	files   []int32   // that are touched, each once
	seen    []bool    // by file: it is touched
	begin   []uintptr // by file: its address, 0 where it is not in memory
	single  bool      // one batch in memory and plain fields: nothing was located
	direct  bool      // all files are in memory, to stay
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
	s.direct, s.encoded = true, false
	s.address = s.address[:n]
	if s.single = s.trivial(); s.single {
		return nil
	}
	s.batch, s.row, s.base = s.batch[:n], s.row[:n], s.base[:n]
	s.g.table.Index.LocateAll(records, s.batch, s.row)
	s.bases()
	return nil
}

// trivial says whether the addresses follow from the record numbers alone: one
// record batch, all of it in memory, and fields without lists or nulls.
func (s *step) trivial() bool {
	t := s.g.table
	if _, one := t.Index.Single(); !one || !s.g.plain {
		return false
	}
	if t.Store == nil {
		return true
	}
	batch, _ := t.Index.Single()
	file := t.file(batch)
	s.touch(file)
	return s.direct && !s.encoded
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
		file := t.file(b)
		if int(file) >= len(s.seen) || !s.seen[file] {
			s.touch(file)
		}
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

// read does all jobs of one field.
func (s *step) read(r *reader, jobs []source.Job) error {
	s.jobs, s.part = s.jobs[:0], s.part[:0]
	for _, j := range jobs {
		if &s.g.readers[s.g.reader[j.Part]] == r {
			s.jobs = append(s.jobs, gather.Job{Program: s.g.programs[j.Part].Program, Rows: j.Rows, Dst: j.Dst})
			s.part = append(s.part, j.Part)
		}
	}
	if len(s.jobs) == 0 {
		return nil
	}
	return guard.Fault(func() error { return s.copy(r) }, s.fault)
}

// copy finds the rows of a field and copies them.
func (s *step) copy(r *reader) error {
	simple := r.plain && (s.single || s.direct && !s.encoded)
	if s.single {
		s.multiples(r)
	} else if simple {
		s.addresses(r)
	} else if err := s.walk.addresses(r); err != nil {
		return err
	}
	err := gather.Run(s.address, s.jobs, gather.Options{Streaming: s.streaming()})
	if err == nil && !simple {
		s.walk.fill()
	}
	s.walk.release()
	return s.describe(r, err)
}

// addresses computes the addresses of rows that follow from metadata.
func (s *step) addresses(r *reader) {
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

// multiples computes the addresses of rows of the only batch.
func (s *step) multiples(r *reader) {
	batch, _ := s.g.table.Index.Single()
	first := uintptr(r.column.Planes[len(r.column.Planes)-1].Data[batch])
	if s.g.table.Store != nil {
		first += s.begin[s.g.table.file(batch)]
	}
	if r.field.packed() {
		first = gather.BitAddress(first, 0)
	}
	address, stride := s.address[:len(s.records)], uintptr(r.stride)
	for i, record := range s.records {
		address[i] = first + uintptr(record)*stride
		if record < 0 {
			address[i] = 0
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
		if b >= 0 && s.base[i] == 0 && !t.Store.Encoded(t.file(b)) {
			from := s.row[i] * bits
			s.walk.spans = append(s.walk.spans, resident.Span{
				File: int(t.file(b)), Offset: r.column.Planes[n].Data[b] + from>>3, Length: int((from+bits+7)>>3 - from>>3 + extra)})
		}
	}
}
