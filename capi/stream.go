package main

/*
#include "internal.h"
*/
import "C"

import (
	"cmp"
	"context"
	"sync"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/columns"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Bounds on a record batch of a stream.
const (
	streamBytes = 16 << 20 // unless one row is larger
	streamRows  = 1 << 20
)

// streamObject reads a dataset in order, a record batch at a time.
type streamObject struct {
	ready
	dataset *dataset
	reader  *columns.Reader
	formats []string // formats of the fields; "" for the default
	records int64    // number of records in the dataset

	mu   sync.Mutex
	next int64   // first record of the next batch
	rows int64   // rows of the previous batch
	list []int64 // reused
	err  error   // error of a batch; the stream ends after it
}

func (*streamObject) String() string { return "a stream" }

// Patience implements handle.Object.
func (s *streamObject) Patience() time.Duration { return s.dataset.Patience() }

// Close implements handle.Object. Batches that were delivered keep their memory.
func (s *streamObject) Close() error {
	until := time.Now().Add(patience)
	err := guard.Call("capi", s.reader.Close)
	return cmp.Or(err, s.dataset.release(until))
}

// newStream creates a stream of the records of a source, which belongs to d.
func newStream(d *dataset, src source.Source, formats []string) (*streamObject, error) {
	raiseProcs()
	reader, err := readerOf(src, columns.Options{Memory: malloc{}})
	if err != nil {
		return nil, err
	}
	return &streamObject{dataset: d.retain(), reader: reader, formats: formats, records: src.Len()}, nil
}

// read returns the next batch. Its buffers belong to the caller.
func (s *streamObject) read(ctx context.Context) (*columns.Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.next == s.records {
		return nil, status.New(status.End, "capi", "the stream is over")
	}
	var b *columns.Batch
	if b, s.err = s.reader.Read(ctx, s.ahead(), streamBytes); s.err != nil {
		return nil, s.err
	}
	s.rows = int64(b.Rows)
	s.next += s.rows
	s.reader.Ahead(count(s.list[:0], s.next, min(s.rows, s.records-s.next)))
	return b, nil
}

// ahead lists the records that the next batch may have. That is bounded by the rows of the
// batch before, so that no long list is made for large rows.
func (s *streamObject) ahead() []int64 {
	n := min(streamRows, streamBytes/int64(max(1, s.reader.RowBytes()))+1, s.records-s.next)
	if s.rows > 0 {
		n = min(n, 4*s.rows)
	}
	s.list = count(s.list[:0], s.next, n)
	return s.list
}

// count appends the n records from first on.
func count(list []int64, first, n int64) []int64 {
	for i := range n {
		list = append(list, first+i)
	}
	return list
}

//export mfgo_dataset_stream
func mfgo_dataset_stream(h C.uint64_t, formats *C.mfi_texts, n C.int32_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withMade(h, e, func(_ context.Context, d *dataset, src source.Source) error {
		given := make([]string, n)
		for i, p := range unsafe.Slice(formats, int(n)) {
			given[i] = C.GoString(p) // "" for NULL
		}
		s, err := newStream(d, src, given)
		if err != nil {
			return err
		}
		put(s, out)
		return nil
	})
}

//export mfgo_stream_schema
func mfgo_stream_schema(h C.uint64_t, out *C.struct_ArrowSchema, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, s *streamObject) error {
		if err := exportSchema(out, s.reader.Fields(), s.formats, false); err != nil {
			return err
		}
		return exportClasses(out, s.reader.Fields())
	})
}

//export mfgo_stream_next
func mfgo_stream_next(h C.uint64_t, out *C.struct_ArrowArray, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, s *streamObject) error {
		b, err := s.read(ctx)
		if err != nil {
			return err
		}
		return exportBatch(out, b)
	})
}
