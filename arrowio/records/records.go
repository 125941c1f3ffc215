// Code generated from package records18 by go generate; DO NOT EDIT.

// Package records makes a source of record batches of Arrow's Go library,
// apache/arrow/go v17, without copying them:
//
//	ds, err := records.New(reader.Schema(), batches, records.Options{})
//
// The other way, [FromBatch] makes a record batch of a loader's batch.
//
// It is a package of its own because it links that library. Package arrowio,
// which reads Arrow files, does not. Package records18 does the same for
// apache/arrow-go v18.
package records

import (
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/meshfeed/meshfeed/arrowio/internal/goarrow"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/source"
)

// Options select how the records are read. The zero value is a good default.
type Options struct {
	// Shapes holds the row shape of fields that are stored as lists of
	// variable length, or as lists with fewer dimensions than the rows have.
	// Without it, the shape of lists comes from the metadata that Hugging
	// Face's datasets library writes, or from the first record.
	Shapes map[string][]int
}

// New makes a source of record batches. Columns become fields or are skipped, as
// in files. The source retains the batches until Close. Until then, the caller
// must not change them.
//
// The error is Incompatible if a batch has other columns than the schema,
// InvalidArgument for shapes that do not fit, and DataLoss for arrays with
// buffers that are too small for their lengths.
func New(schema *arrow.Schema, batches []arrow.Record, o Options) (source.Source, error) {
	if schema == nil {
		return nil, goarrow.NoSchema()
	}
	return goarrow.New(goarrow.Records[arrow.Record]{
		Batches: batches,
		Shapes:  o.Shapes,
		Schema:  fields(schema),
		Fields: func(r arrow.Record) []goarrow.Field {
			if r.Schema() == schema {
				return nil
			}
			return fields(r.Schema())
		},
		Equal: func(a, b goarrow.Field) bool {
			return arrow.TypeEqual(a.Type.(arrow.DataType), b.Type.(arrow.DataType))
		},
		Write: func(w io.Writer) error { return ipc.NewWriter(w, ipc.WithSchema(schema)).Close() },
		Array: func(r arrow.Record, column int) *table.Array { return goarrow.Array(r.Column(column).Data()) },
	})
}

func fields(s *arrow.Schema) []goarrow.Field {
	list := make([]goarrow.Field, s.NumFields())
	for i, f := range s.Fields() {
		list[i] = goarrow.Field{Name: f.Name, Type: f.Type}
	}
	return list
}
