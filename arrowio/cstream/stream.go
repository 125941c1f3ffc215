package cstream

/*
#include "cstream.h"
*/
import "C"

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Options say how a stream is read. The zero value is good for most.
type Options struct {
	// Shapes gives the row shape of fields that are lists of variable length.
	// Without it, the shape comes from the metadata that Hugging Face's
	// datasets library writes, or from the first record.
	Shapes map[string][]int
}

// stream is a source over the batches of a C stream.
type stream struct {
	*table.Table
	schema source.Schema

	mu     sync.Mutex
	held   *C.mfcs_held // nil once it was released
	hashed *source.Fingerprint
}

// Read reads an Arrow C stream, a struct ArrowArrayStream, to its end, and
// serves the buffers of its arrays as they are. The stream is moved in and
// released before Read returns, also if it fails. All callbacks of the stream
// run on the calling goroutine.
//
// It is IO for an error of the stream, and DataLoss for arrays that do not fit
// the schema.
func Read(address unsafe.Pointer, o Options) (source.Source, error) {
	held := C.mfcs_drain((*C.struct_ArrowArrayStream)(address))
	if held == nil {
		return nil, status.New(status.ResourceExhausted, "arrowio", "there is no memory to read the stream")
	}
	s, err := newStream(held, o)
	if err != nil {
		C.mfcs_release(held)
		return nil, err
	}
	return s, nil
}

func newStream(held *C.mfcs_held, o Options) (*stream, error) {
	if held.error != 0 {
		return nil, status.Errorf(status.IO, "arrowio", "the stream failed: %s (error %d)", C.GoString(&held.message[0]), held.error)
	}
	schema, err := schemaOf(&held.schema)
	C.mfcs_release_schema(held)
	if err != nil {
		return nil, status.Errorf(status.Unsupported, "arrowio", "the stream cannot be read: %w", err).
			WithHint("pass an object that gives record batches, such as a table")
	}
	r := reader{arrays: unsafe.Slice(held.arrays, int(held.n)), schema: schema, shapes: o.Shapes}
	if err := r.batches(); err != nil {
		return nil, err
	}
	if err := r.fields(); err != nil {
		return nil, err
	}
	t := &table.Table{
		Fields: r.described, Schema: r.out, Index: table.NewIndex(r.rows),
		Load: func(field int) (*table.Column, error) { return r.columns[field], nil },
		Gate: table.NewGate(func() error { return nil }),
	}
	return &stream{Table: t, schema: r.out, held: held}, nil
}

// Schema implements source.Source.
func (s *stream) Schema() source.Schema { return s.schema }

// Len implements source.Source.
func (s *stream) Len() int64 { return s.Index.Len() }

// Gatherer implements source.Source.
func (s *stream) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := s.Table.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Fingerprint implements source.Source.
func (s *stream) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashed == nil {
		f, err := fingerprint(ctx, s)
		if err != nil {
			return f, err
		}
		s.hashed = &f
	}
	return *s.hashed, nil
}

// Close implements source.Source. It waits for the last gather, and then
// releases the arrays on this goroutine.
func (s *stream) Close() error {
	err := s.Gate.Close(0)
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	if held != nil {
		C.mfcs_release(held)
	}
	return err
}

// reader turns the arrays of a stream into the columns of a table.
type reader struct {
	arrays []C.struct_ArrowArray
	schema *arrowmeta.Schema
	shapes map[string][]int

	rows      []int64
	out       source.Schema
	described []*table.Field
	columns   []*table.Column
}

func damaged(format string, args ...any) *status.Error {
	return status.Errorf(status.DataLoss, "arrowio", format, args...).
		WithHint("the producer of the stream is at fault")
}

// batches checks the record batches and counts their rows.
func (r *reader) batches() error {
	for i := range r.arrays {
		a := &r.arrays[i]
		if a.length < 0 || a.length > maxRecords || a.offset < 0 || a.offset > maxRecords {
			return damaged("record batch %d of the stream has %d rows from row %d on", i, a.length, a.offset)
		}
		if int(a.n_children) != len(r.schema.Fields) {
			return damaged("record batch %d of the stream has %d columns, but the schema has %d", i, a.n_children, len(r.schema.Fields))
		}
		if a.null_count > 0 {
			return status.Errorf(status.Unsupported, "arrowio", "record batch %d of the stream has %d rows that are null as a whole", i, a.null_count).
				WithHint("drop those rows")
		}
		r.rows = append(r.rows, int64(a.length))
	}
	return nil
}

// fields describes every column, or says why it cannot be an array.
func (r *reader) fields() error {
	declared := r.schema.RowShapes()
	for name := range r.shapes {
		if !r.has(name) {
			return status.Errorf(status.InvalidArgument, "arrowio", "shapes names %q, but the stream has no such column", name)
		}
	}
	for i := range r.schema.Fields {
		f := &r.schema.Fields[i]
		field, column, reason, err := r.field(i, declared[i])
		if err != nil {
			return err
		}
		if reason != "" {
			r.out.Skipped = append(r.out.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reason})
			continue
		}
		r.described, r.columns = append(r.described, field), append(r.columns, column)
		r.out.Fields = append(r.out.Fields, field.Source(hasNulls(column)))
	}
	return nil
}

func (r *reader) has(name string) bool {
	for i := range r.schema.Fields {
		if r.schema.Fields[i].Name == name {
			return true
		}
	}
	return false
}

func hasNulls(c *table.Column) bool {
	for i := range c.Planes {
		if c.Planes[i].Valid != nil {
			return true
		}
	}
	return false
}

// field describes one column and finds its buffers.
func (r *reader) field(number int, declared []int) (field *table.Field, column *table.Column, reason string, err error) {
	f := &r.schema.Fields[number]
	if twice := r.repeated(number); twice {
		return nil, nil, "another column has the same name", nil
	}
	if field, reason = table.Describe(f); reason != "" {
		return nil, nil, reason, nil
	}
	b := builder{field: field, column: &table.Column{Planes: make([]table.Plane, len(field.Nodes))}}
	for i := range r.arrays {
		if err := b.batch(&r.arrays[i], number); err != nil {
			return nil, nil, "", damaged("record batch %d of the stream: column %q: %v", i, f.Name, err)
		}
		if b.reason != "" {
			return nil, nil, b.reason, nil
		}
	}
	b.finish(len(r.arrays))
	asked, ok := r.shapes[f.Name]
	if ok {
		if err := field.Resolve(asked); err != nil {
			return nil, nil, "", status.Errorf(status.InvalidArgument, "arrowio", "field %q %v", f.Name, err).WithHint("correct its entry in shapes")
		}
	} else if field.Open() {
		reason = r.measure(&b, declared)
	}
	return field, b.column, reason, nil
}

func (r *reader) repeated(number int) bool {
	for i := range r.schema.Fields[:number] {
		if r.schema.Fields[i].Name == r.schema.Fields[number].Name {
			return true
		}
	}
	return false
}

// measure finds the row shape of lists of unknown length: as the metadata
// declare it, else as the first record has it.
func (r *reader) measure(b *builder, declared []int) string {
	shape := append([]int{}, b.field.Shape...)
	if len(declared) == len(shape) {
		for i, d := range declared {
			if shape[i] < 0 {
				shape[i] = d
			}
		}
	}
	for i, rows := range r.rows {
		if rows > 0 {
			b.first(i, shape)
			break
		}
	}
	for _, d := range shape {
		if d < 0 {
			return "its rows have no known shape: the first record has no list to measure; give its row shape in shapes"
		}
	}
	if err := b.field.Resolve(shape); err != nil {
		return fmt.Sprint("it ", err)
	}
	return ""
}
