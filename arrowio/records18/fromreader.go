package records18

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/meshfeed/meshfeed/arrowio/internal/goarrow"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/stream"
)

// FromReader returns a stream of batches from a reader that can be read once, such as a
// socket or a query. Batches keep the order of the records, and cross the borders of record
// batches. The stream retains the reader until Close, and a record batch until its records
// are copied. The reader must not write into the memory of a record batch that is retained,
// and no other caller may use the reader meanwhile.
//
// All checks of schema and layout happen here, before the first record. After an error the
// reader is not retained. An error of the reader comes from Next of the stream, which wraps
// it. Columns with lists take their length or shape from an array in the layout that takes
// whole rows. All rows must have it.
//
// A reader takes no context. If Next of the reader waits, calls of the stream still end
// with their context. Close of the stream waits at most a second, and the reader is
// released when its Next returns.
func FromReader(r array.RecordReader, o stream.Options) (*stream.Stream, error) {
	if r == nil {
		return nil, goarrow.NoReader()
	}
	return goarrow.Reader[arrow.RecordBatch]{
		Reader: r,
		Record: r.RecordBatch,
		New: func(batches []arrow.RecordBatch, shapes map[string][]int) (source.Source, error) {
			return New(r.Schema(), batches, Options{Shapes: shapes})
		},
	}.Stream(o)
}
