package goarrow

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/stream"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Reader is a record reader with the functions of a release of the library.
type Reader[B Batch] struct {
	Reader interface {
		Next() bool
		Err() error
		Retain()
		Release()
	}

	// Record returns the record batch that Next has found.
	Record func() B

	// New makes a source of record batches with the reader's schema.
	New func(batches []B, shapes map[string][]int) (source.Source, error)
}

// Stream returns a stream of the reader's records, which retains the reader until it is
// closed.
func (r Reader[B]) Stream(o stream.Options) (*stream.Stream, error) {
	f := &feed[B]{Reader: r}
	if err := guard.Call("arrowio", func() error { return f.describe(o.Layout) }); err != nil {
		return nil, err
	}
	r.Reader.Retain()
	return stream.New(f, o)
}

// NoReader returns the error for a missing reader.
func NoReader() error {
	return status.New(status.InvalidArgument, "arrowio", "the reader is nil")
}

// feed implements stream.Feed. A record batch is a chunk.
type feed[B Batch] struct {
	Reader[B]

	shapes  map[string][]int
	schema  source.Schema
	records int64
}

// describe finds the fields. The lists of a column have the dimensions of the rows in the
// layout, because no record shows them yet.
func (f *feed[B]) describe(plan *layout.Layout) error {
	empty, err := f.New(nil, nil)
	if err != nil {
		return err
	}
	f.schema = empty.Schema()
	if err := empty.Close(); err != nil || plan == nil {
		return err
	}
	if f.shapes, err = shapesOf(plan, f.schema); err != nil || len(f.shapes) == 0 {
		return err
	}
	if empty, err = f.New(nil, f.shapes); err != nil {
		return err
	}
	f.schema = empty.Schema()
	return empty.Close()
}

// shapesOf returns the shapes of the rows of lists, by field. Arrays that take columns do not
// show how long the rows are. Text and bytes have no shape, and the loader says why.
func shapesOf(plan *layout.Layout, schema source.Schema) (map[string][]int, error) {
	shapes, cut := map[string][]int{}, map[string]string{}
	for _, a := range plan.Arrays() {
		_, field, ok := schema.Field(a.Field)
		switch {
		case !ok || field.Ragged == 0 || field.IsText() || field.IsBytes() || len(a.RowShape()) == 0:
		case a.Columns == nil:
			shapes[a.Field] = a.RowShape()
		default:
			cut[a.Field] = a.Name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cut)) {
		if shapes[name] == nil {
			return nil, status.Errorf(status.Unsupported, "arrowio", "array %q takes columns of field %q, whose lists have no length in the schema", cut[name], name).
				WithHint("send fixed-size lists, or add an array of the whole rows, whose shape has the length")
		}
	}
	return shapes, nil
}

func (f *feed[B]) Schema() source.Schema { return f.schema }

// Next implements stream.Feed. Readers take no context.
func (f *feed[B]) Next(ctx context.Context) (source.Source, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !f.Reader.Reader.Next() {
		if err := f.Reader.Reader.Err(); err != nil && !errors.Is(err, io.EOF) {
			return nil, status.Errorf(status.IO, "arrowio", "the reader failed after %d records: %w", f.records, err)
		}
		return nil, nil
	}
	chunk, err := f.New([]B{f.Record()}, f.shapes)
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "arrowio", "the record batch after %d records cannot be used: %w", f.records, err)
	}
	f.records += chunk.Len()
	return chunk, nil
}

func (f *feed[B]) Close() { f.Reader.Reader.Release() }
