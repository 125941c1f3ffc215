package source

import (
	"context"

	"github.com/meshfeed/meshfeed/core/status"
)

// Reader reads whole rows of some fields of a source. Package cut makes a [Gatherer]
// of it for the fixed fields, which cuts the rows into blocks, converts them and fills
// their nulls. Several goroutines may read at a time.
type Reader interface {
	// Read finds the rows of all spans in a draw, then calls use and returns its error.
	// The rows stay valid until use returns. All spans of one call are read
	// together, so that a row, a decoded batch or a disk is accessed once. Spans
	// of one field should follow each other. A record outside the source is
	// OutOfRange, a field that the reader was not made for is InvalidArgument.
	Read(ctx context.Context, draw Draw, spans []Span, use func() error) error

	// Lengths writes the length of the row of each record to out: the size of the
	// first dimension, -1 for a null row. It reads offsets and validity bitmaps, and
	// no values. The error is InvalidArgument if the field is neither ragged nor
	// stored as lists; [RowLengths] takes every field except scalars.
	Lengths(ctx context.Context, draw Draw, field int, records, out []int64) error

	// Ahead announces the records of a later Read with this draw, as Gatherer.Ahead does.
	Ahead(draw Draw, records []int64)

	// Close ends readahead. No Read may run.
	Close() error
}

// Span asks a [Reader] for one row of a field. Read sets Row, Nulls and Lists, which
// must be nil before.
type Span struct {
	Field  int
	Record int64
	Row    []byte // the elements in C order, booleans as bytes 0 and 1; read-only
	Nulls  []bool // which elements are null; nil if none is

	// Lists holds the lengths of the inner lists of a ragged row: one list for
	// each ragged dimension below the first, -1 for a null list. The lengths of one
	// dimension add up to the number of lists, or elements, of the next.
	Lists [][]int64
}

// Null reports whether the row is null: a fixed row without any element that is not
// null, or a row of lists that is null itself. An empty list is not null.
func (s *Span) Null() bool { return s.Row == nil }

// FixedReader is embedded by a [Reader] that has no ragged fields.
type FixedReader struct{}

// Lengths implements Reader.
func (FixedReader) Lengths(_ context.Context, _ Draw, field int, _, _ []int64) error {
	return status.Errorf(status.InvalidArgument, "source", "field %d has rows of one shape, and no lengths", field)
}
