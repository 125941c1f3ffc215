package arrowio

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
	"github.com/meshfeed/meshfeed/core/status"
)

// FromRecords makes a dataset of record batches of Arrow's Go library, without
// copying them. Columns become fields, or are skipped, as those of files do;
// lists of variable length have the shape that the metadata declare, or that of
// the first record. The dataset retains the records until Close, and nobody may
// change them before.
//
// It is Incompatible if a record has other columns than the schema, and
// DataLoss for arrays whose buffers are too small for their lengths.
func FromRecords(schema *arrow.Schema, records []arrow.Record) (*Dataset, error) {
	if schema == nil {
		return nil, status.New(status.InvalidArgument, "arrowio", "records need a schema")
	}
	for i, r := range records {
		if err := sameColumns(schema, i, r.Schema()); err != nil {
			return nil, err
		}
	}
	meta, err := readSchema(schema)
	if err != nil {
		return nil, err
	}
	records = slices.Clone(records)
	b := table.Batches{Origin: "records", Schema: meta}
	for _, r := range records {
		b.Rows = append(b.Rows, r.NumRows())
	}
	b.Array = func(batch, column int) *table.Array { return arrayOf(records[batch].Column(column).Data()) }
	t, err := b.Table(func() error {
		for _, r := range records {
			r.Release()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		r.Retain()
	}
	return &Dataset{table: t, borrow: true}, nil
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
