// Package goarrow makes a source from record batches of any major release of Arrow's Go library. It
// also makes the columns of a record batch from a batch of a loader. Each release has its own
// types, which are parameters here. A package for each release supplies them: arrowio/records and
// arrowio/records18.
package goarrow

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Batch is a record batch.
type Batch interface {
	comparable
	NumRows() int64
	Retain()
	Release()
}

// Field is a column of a schema.
type Field struct {
	Name string
	Type fmt.Stringer
}

// Records are record batches with the functions of a release of the library.
type Records[B Batch] struct {
	Batches []B
	Shapes  map[string][]int

	// Schema lists the columns of all batches.
	Schema []Field

	// Fields lists the columns of a batch. It returns nil if the batch has the schema
	// itself.
	Fields func(b B) []Field

	// Equal compares the types of two fields.
	Equal func(a, b Field) bool

	// Write writes an IPC stream that has the schema and no batches.
	Write func(w io.Writer) error

	// Array describes a column of a batch. It calls the function [Array].
	Array func(b B, column int) *table.Array
}

// New makes a source of the batches, and retains them until it is closed.
func New[B Batch](r Records[B]) (source.Source, error) {
	batches := slices.Clone(r.Batches)
	var none B
	for i, b := range batches {
		if b == none {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "record batch %d of the records is nil", i)
		}
		if err := r.sameColumns(i, b); err != nil {
			return nil, err
		}
	}
	schema, err := r.schema()
	if err != nil {
		return nil, err
	}
	list := table.Batches{Origin: "records", Schema: schema, Shapes: table.Shapes{Shapes: r.Shapes}}
	for _, b := range batches {
		list.Rows = append(list.Rows, b.NumRows())
	}
	list.Array = func(batch, column int) *table.Array { return r.Array(batches[batch], column) }
	t, err := list.Table(func() error {
		for _, b := range batches {
			b.Release()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		b.Retain()
	}
	return table.NewMemory(t), nil
}

// NoSchema returns the error for records without a schema.
func NoSchema() error {
	return status.New(status.InvalidArgument, "arrowio", "records need a schema")
}

// sameColumns returns an error unless batch i has the columns of the schema.
func (r *Records[B]) sameColumns(i int, b B) error {
	got := r.Fields(b)
	if got == nil {
		return nil
	}
	fail := func(format string, args ...any) error {
		return status.Errorf(status.Incompatible, "arrowio", "record batch %d of the records "+format, append([]any{i}, args...)...).
			WithHint("give records of one schema, such as the records of one reader or builder")
	}
	if len(got) != len(r.Schema) {
		return fail("has %d columns, but the schema has %d", len(got), len(r.Schema))
	}
	for c, want := range r.Schema {
		if g := got[c]; g.Name != want.Name || !r.Equal(g, want) {
			return fail("has column %d %q of type %v, but the schema has %q of type %v", c, g.Name, g.Type, want.Name, want.Type)
		}
	}
	return nil
}

// schema converts the schema by writing a stream without records and reading it
// back, so that it has the same meaning as the schema of a file.
func (r *Records[B]) schema() (*arrowmeta.Schema, error) {
	var stream bytes.Buffer
	if err := guard.Call("arrowio", func() error { return r.Write(&stream) }); err != nil {
		return nil, status.Errorf(status.Unsupported, "arrowio", "the schema of the records cannot be written: %w", err)
	}
	f, err := arrowmeta.Read(bytes.NewReader(stream.Bytes()), int64(stream.Len()))
	if err != nil {
		return nil, err
	}
	if f.Schema.BigEndian {
		return nil, status.New(status.Unsupported, "arrowio", "the values of the records are big-endian")
	}
	return &f.Schema, nil
}

// Data is the content of an array: buffers of type B, and a type of type T.
type Data[D, B, T any] interface {
	DataType() T
	Len() int
	Offset() int
	NullN() int
	Buffers() []B
	Children() []D
	Dictionary() D
}

// Buffer is a piece of memory.
type Buffer interface {
	comparable
	Len() int
	Bytes() []byte
}

// Array describes the content of an array.
func Array[D Data[D, B, T], B Buffer, T any](a D) *table.Array {
	out := &table.Array{Length: int64(a.Len()), Offset: int64(a.Offset()), Nulls: int64(a.NullN())}
	for _, b := range a.Buffers() {
		out.Buffers = append(out.Buffers, bufferOf(b))
	}
	out.Child = func(i int) *table.Array {
		if i >= len(a.Children()) {
			return nil
		}
		return Array(a.Children()[i])
	}
	out.Dictionary = func() *table.Array {
		if d := a.Dictionary(); any(d) != nil && any(d.DataType()) != nil {
			return Array(d)
		}
		return nil
	}
	return out
}

func bufferOf[B Buffer](b B) table.Buffer {
	var none B
	if b == none || b.Len() == 0 {
		return table.Buffer{}
	}
	return table.Buffer{At: unsafe.Pointer(unsafe.SliceData(b.Bytes())), Bytes: int64(b.Len())}
}
