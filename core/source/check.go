package source

import (
	"context"
	"reflect"

	"github.com/meshfeed/meshfeed/core/status"
)

// Check checks all rows of some fields of a source: see Check of [Facts].
func Check(ctx context.Context, src Source, fields []int) error {
	if err := Given("source", src); err != nil {
		return err
	}
	if check := src.Facts().Check; check != nil {
		return check(ctx, fields, 0, src.Len())
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
