package cstream

/*
#include "cstream.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Options say how a stream is read. The zero value is good for most.
type Options struct {
	// Shapes gives the row shape of fields that are lists of variable length.
	// Without it, the shape comes from the metadata that Hugging Face's
	// datasets library writes, or from the first record.
	Shapes map[string][]int
}

// stream is a source over the batches of a C stream.
type stream struct {
	*table.Memory

	mu   sync.Mutex
	held *C.mfcs_held // nil once it was released
}

// Read reads an Arrow C stream, a struct ArrowArrayStream, to its end, and
// serves the buffers of its arrays as they are. The stream is moved in and
// released before Read returns, also if it fails. All callbacks of the stream
// run on the calling goroutine.
//
// It is IO for an error of the stream, and DataLoss for arrays that do not fit
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

func newStream(held *C.mfcs_held, o Options) (*stream, error) {
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
	b.Shapes = o.Shapes
	t, err := b.Table(func() error { return nil })
	if err != nil {
		return nil, err
	}
	return &stream{Memory: table.NewMemory(t), held: held}, nil
}

// Close implements source.Source. It waits for the last gather, and then
// releases the arrays on this goroutine.
func (s *stream) Close() error {
	err := s.Memory.Close()
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	if held != nil {
		C.mfcs_release(held)
	}
	return err
}
