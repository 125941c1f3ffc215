package source

import "context"

// Reader reads whole rows. A source that computes or assembles its rows implements
// it. Package cut then builds a [Gatherer], which cuts the rows into blocks,
// converts them and fills their nulls. Several goroutines may read at a time.
type Reader interface {
	// Read finds the rows of all spans, then calls use and returns its error.
	// The rows stay valid until use returns. All spans of one call are read
	// together, so that a row, a decoded batch or a disk is accessed once. A
	// record outside the source is OutOfRange.
	Read(ctx context.Context, spans []Span, use func() error) error

	// Ahead announces the records of a later Read, as Gatherer.Ahead does.
	Ahead(records []int64)

	// Close ends readahead. No Read may run.
	Close() error
}

// Span asks a [Reader] for one row of a field. Read sets Row and Nulls.
type Span struct {
	Field  int
	Record int64
	Row    []byte // the elements in C order, booleans as bytes 0 and 1; nil if all are null; read-only
	Nulls  []bool // which elements are null; nil if none is
}
