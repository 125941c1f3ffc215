package block

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// Set holds the programs of a gatherer's parts, by field. A program copies a part of
// each row (see gather.Program).
type Set struct {
	Fields []int // the fields that parts take, each once

	schema   source.Schema
	programs []*Program // programs of each part
	group    []int      // the index in Fields of each part's field
}

// Form describes how the rows of a field lie in memory.
type Form struct {
	Bits    bool  // booleans are bits
	Strides []int // bytes between neighbors in each dimension; nil for C order
}

// Compile makes the programs of parts. Form describes the rows of a field; nil
// stands for rows in C order.
func Compile(schema source.Schema, parts []source.Part, form func(field int) Form) (*Set, error) {
	s := &Set{schema: schema, programs: make([]*Program, len(parts)), group: make([]int, len(parts))}
	for i, p := range parts {
		if p.Field < 0 || p.Field >= len(schema.Fields) {
			return nil, fail("part %d takes field %d of %d", i, p.Field, len(schema.Fields))
		}
		var f Form
		if form != nil {
			f = form(p.Field)
		}
		var err error
		if s.programs[i], err = compile(schema.Fields[p.Field], f, p); err != nil {
			return nil, err
		}
		if s.group[i] = slices.Index(s.Fields, p.Field); s.group[i] < 0 {
			s.group[i], s.Fields = len(s.Fields), append(s.Fields, p.Field)
		}
	}
	return s, nil
}

// Group returns the index in Fields of the field that a part takes.
func (s *Set) Group(part int) int { return s.group[part] }

// Field returns the k-th field.
func (s *Set) Field(k int) *source.Field { return &s.schema.Fields[s.Fields[k]] }

// Check returns an error if a job is out of range.
func (s *Set) Check(records int, jobs []source.Job) error {
	for i, j := range jobs {
		if j.Part < 0 || j.Part >= len(s.programs) {
			return fail("job %d is for part %d of %d", i, j.Part, len(s.programs))
		}
		n, width := j.Rows[1]-j.Rows[0], s.programs[j.Part].Bytes()
		if j.Rows[0] < 0 || n < 0 || j.Rows[1] > records {
			return fail("job %d is for rows %v of %d records", i, j.Rows, records)
		}
		if n*width != len(j.Dst) {
			return fail("job %d has %d bytes for %d rows of %d bytes", i, len(j.Dst), n, width)
		}
	}
	return nil
}

// Rows returns the smallest range that contains the rows of all jobs of the k-th
// field.
func (s *Set) Rows(k int, jobs []source.Job) (from, to int) {
	for _, j := range jobs {
		if s.group[j.Part] != k || j.Rows[0] == j.Rows[1] {
			continue
		}
		if to == 0 {
			from = j.Rows[0]
		}
		from, to = min(from, j.Rows[0]), max(to, j.Rows[1])
	}
	return from, to
}

// Work is memory that consecutive gathers reuse.
type Work struct {
	addresses []uintptr
	jobs      []gather.Job
}

// Addresses returns a list for the addresses of n rows. Its content is
// undefined.
func (w *Work) Addresses(n int) []uintptr {
	w.addresses = slices.Grow(w.addresses[:0], n)[:n]
	return w.addresses
}

// Reset drops the references to destinations.
func (w *Work) Reset() { clear(w.jobs[:cap(w.jobs)]) }

// Address returns the address of the first byte of a row, 0 for nil.
func Address(row []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(row))) }

// Jobs converts the jobs of the k-th field to jobs of package gather.
func (s *Set) Jobs(k int, jobs []source.Job, w *Work) []gather.Job {
	w.jobs = w.jobs[:0]
	for _, j := range jobs {
		if s.group[j.Part] == k {
			w.jobs = append(w.jobs, gather.Job{Program: s.programs[j.Part].Program, Rows: j.Rows, Dst: j.Dst})
		}
	}
	return w.jobs
}

// batchesInMemory is the likely number of batches of a loader in memory at the same
// time.
const batchesInMemory = 4

// Run does the jobs of the k-th field over the rows at the addresses in w. If zeros is set,
// address 0 stands for a row of zeros.
func (s *Set) Run(k int, jobs []source.Job, records []int64, w *Work, zeros bool) error {
	list, bytes := s.Jobs(k, jobs, w), 0
	for i := range list {
		bytes += len(list[i].Dst)
	}
	err := gather.Run(w.addresses, list, gather.Options{Zeros: zeros, Streaming: gather.OutgrowsCache(batchesInMemory * bytes)})
	out, ok := errors.AsType[*gather.RangeError](err)
	if !ok {
		return err
	}
	return OutOfRange(s.Field(k), records[out.Row], out)
}

// OutOfRange returns the error for a value of a record that the delivered type cannot hold.
func OutOfRange(f *source.Field, record int64, e *gather.RangeError) error {
	return status.Errorf(status.OutOfRange, "source", "field %q: record %d holds %d, which %s cannot", f.Name, record, e.Value, e.To).
		WithHint("deliver the field as %v (in JAX: jax.config.update(\"jax_enable_x64\", True)), or store smaller values", f.Type).
		With("field", f.Name).With("record", record)
}

// Fill writes the fill value over the null elements of one row in all jobs of
// the k-th field. Nulls is nil if all elements are null. It returns an error for a
// null without a fill value, also outside of the boxes, so that all processes find it.
func (s *Set) Fill(k int, jobs []source.Job, records []int64, row int, nulls []bool) error {
	for _, j := range jobs {
		if s.group[j.Part] == k && j.Rows[0] <= row && row < j.Rows[1] {
			p := s.programs[j.Part]
			if p.fill == nil {
				return p.field.NullAt(records[row])
			}
			at := (row - j.Rows[0]) * p.Bytes()
			p.fillNulls(j.Dst[at:at+p.Bytes()], nulls)
		}
	}
	return nil
}
