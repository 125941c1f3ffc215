package source

import (
	"context"
	"reflect"

	"github.com/meshfeed/meshfeed/core/status"
)

// Checker is implemented by a Source whose metadata do not prove that all rows
// have the shape of the schema, because they are lists.
type Checker interface {
	// Check reads what it needs to verify that the rows [start, stop) of the
	// fields have the shapes of the schema. The error names the first record
	// whose row has another shape. A range that was checked is not read again.
	Check(ctx context.Context, fields []int, start, stop int64) error
}

// Check checks all rows of some fields of a source, if the source is a [Checker].
func Check(ctx context.Context, src Source, fields []int) error {
	if err := Given("source", src); err != nil {
		return err
	}
	if c, ok := src.(Checker); ok {
		return c.Check(ctx, fields, 0, src.Len())
	}
	return nil
}

// Given returns an error of a package if a source is nil, or a nil pointer.
func Given(op string, sources ...Source) error {
	for i, src := range sources {
		if v := reflect.ValueOf(src); src != nil && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			continue
		}
		e := status.New(status.InvalidArgument, op, "there is no source")
		if len(sources) > 1 {
			e = status.Errorf(status.InvalidArgument, op, "source %d of %d is nil", i, len(sources))
		}
		return e.WithHint("give a dataset; arrowio.Open, which opens one, returns nil with an error")
	}
	return nil
}
