package main

/*
#include "internal.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/cstream"
	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/capi/internal/options"
)

//export mfgo_dataset_open_stream
func mfgo_dataset_open_stream(stream *C.struct_ArrowArrayStream, opts *C.mfi_text, n C.size_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		o := options.Parse("dataset", text(opts, n))
		read := cstream.Options{Shapes: shapes(o)}
		if err := o.Err(); err != nil {
			return err
		}
		src, err := cstream.Read(unsafe.Pointer(stream), read)
		if err != nil {
			return err
		}
		put(newDataset(future.Of(src), true), out)
		return nil
	})
}
