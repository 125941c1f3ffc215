package cstream

/*
#include "cstream.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Options select how a stream is read. The zero value is a good default.
type Options struct {
	// Shapes holds the row shape of fields that are lists of variable length.
	// Without it, the shape comes from the metadata that Hugging Face's
	// datasets library writes, or from the first record.
	Shapes map[string][]int

	// Types holds the type of the elements that binary values hold, for fields in Shapes.
	// Without it, they are bytes.
	Types map[string]dtype.Type
}

// Read reads an Arrow C stream, a struct ArrowArrayStream, to its end. The
// source uses the buffers of its arrays without copying them. Read takes the
// stream over and releases it before it returns, even if it fails. All callbacks
// of the stream run on the calling goroutine.
//
// The error is IO for an error of the stream, and DataLoss for arrays that do not fit
// the schema.
func Read(address unsafe.Pointer, o Options) (source.Source, error) {
	held := C.mfcs_drain((*C.struct_ArrowArrayStream)(address))
	if held == nil {
		return nil, status.New(status.ResourceExhausted, "arrowio", "there is no memory to read the stream")
	}
	s, err := newStream(held, o)
	if err != nil {
		C.mfcs_release(held)
		return nil, err
	}
	return s, nil
}

func newStream(held *C.mfcs_held, o Options) (source.Source, error) {
	if held.error != 0 {
		return nil, status.Errorf(status.IO, "arrowio", "the stream failed: %s (error %d)", C.GoString(&held.message[0]), held.error)
	}
	schema, err := schemaOf(&held.schema)
	C.mfcs_release_schema(held)
	if err != nil {
		return nil, status.Errorf(status.Unsupported, "arrowio", "the stream cannot be read: %w", err).
			WithHint("pass an object that gives record batches, such as a table that has the array as a column")
	}
	b, err := batches(unsafe.Slice(held.arrays, int(held.n)), schema)
	if err != nil {
		return nil, err
	}
	b.Shapes = table.Shapes{Shapes: o.Shapes, Types: o.Types}
	t, err := b.Table(nil)
	if err != nil {
		return nil, err
	}
	return newBorrowed(t, func() { C.mfcs_release(held) }), nil
}
