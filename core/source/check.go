package source

import "context"

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
	if c, ok := src.(Checker); ok {
		return c.Check(ctx, fields, 0, src.Len())
	}
	return nil
}
