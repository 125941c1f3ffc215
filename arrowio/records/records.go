// Package records serves record batches of Arrow's Go library, apache/arrow/go,
// as a source of meshfeed, without copying them:
//
//	ds, err := records.New(reader.Schema(), batches, records.Options{})
//
// It is a package of its own because it links that library; package arrowio,
// which reads Arrow files, does not.
package records

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/guard"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Options say what the records mean. The zero value is good for most.
type Options struct {
	// Shapes gives the row shape of fields that are stored as lists of
	// variable length, or in fewer dimensions than they have. Without it, the
	// shape of lists comes from the metadata that Hugging Face's datasets
	// library writes, or from the first record.
	Shapes map[string][]int
}

// New makes a source of record batches. Columns become fields, or are skipped,
// as those of files do. The source retains the batches until Close, and nobody
// may change them before.
//
// It is Incompatible if a batch has other columns than the schema,
// InvalidArgument for shapes that do not fit, and DataLoss for arrays whose
// buffers are too small for their lengths.
func New(schema *arrow.Schema, batches []arrow.Record, o Options) (source.Source, error) {
	if schema == nil {
		return nil, status.New(status.InvalidArgument, "arrowio", "records need a schema")
	}
	for i, r := range batches {
		if r == nil {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "record batch %d of the records is nil", i)
		}
		if err := sameColumns(schema, i, r.Schema()); err != nil {
			return nil, err
		}
	}
	meta, err := readSchema(schema)
	if err != nil {
		return nil, err
	}
	batches = slices.Clone(batches)
	b := table.Batches{Origin: "records", Schema: meta, Shapes: o.Shapes}
	for _, r := range batches {
		b.Rows = append(b.Rows, r.NumRows())
	}
	b.Array = func(batch, column int) *table.Array { return arrayOf(batches[batch].Column(column).Data()) }
	t, err := b.Table(func() error {
		for _, r := range batches {
			r.Release()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range batches {
		r.Retain()
	}
	return table.NewMemory(t), nil
}

// sameColumns makes sure that record i has the columns of the schema.
func sameColumns(want *arrow.Schema, i int, got *arrow.Schema) error {
	fail := func(format string, args ...any) error {
		return status.Errorf(status.Incompatible, "arrowio", "record batch %d of the records "+format, append([]any{i}, args...)...).
			WithHint("give records of one schema, such as those of one reader or builder")
	}
	if got.NumFields() != want.NumFields() {
		return fail("has %d columns, but the schema has %d", got.NumFields(), want.NumFields())
	}
	for c, f := range want.Fields() {
		if g := got.Field(c); g.Name != f.Name || !arrow.TypeEqual(g.Type, f.Type) {
			return fail("has column %d %q of type %v, but the schema has %q of type %v", c, g.Name, g.Type, f.Name, f.Type)
		}
	}
	return nil
}

// readSchema gives a schema as it is read from files, by writing a stream
// without records: so both mean the same to us.
func readSchema(schema *arrow.Schema) (*arrowmeta.Schema, error) {
	var stream bytes.Buffer
	err := guard.Call("arrowio", func() error { return ipc.NewWriter(&stream, ipc.WithSchema(schema)).Close() })
	if err != nil {
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

// arrayOf describes an array.
func arrayOf(a arrow.ArrayData) *table.Array {
	out := &table.Array{Length: int64(a.Len()), Offset: int64(a.Offset()), Nulls: int64(a.NullN())}
	for _, b := range a.Buffers() {
		out.Buffers = append(out.Buffers, bufferOf(b))
	}
	out.Child = func() *table.Array {
		if len(a.Children()) != 1 {
			return nil
		}
		return arrayOf(a.Children()[0])
	}
	out.Dictionary = func() *table.Array {
		if d := a.Dictionary(); d != nil && d.DataType() != nil {
			return arrayOf(d)
		}
		return nil
	}
	return out
}

func bufferOf(b *memory.Buffer) table.Buffer {
	if b == nil || b.Len() == 0 {
		return table.Buffer{}
	}
	return table.Buffer{At: unsafe.Pointer(unsafe.SliceData(b.Bytes())), Bytes: int64(b.Len())}
}
