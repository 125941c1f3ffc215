package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed"
	"github.com/meshfeed/meshfeed/capi/internal/handle"
)

// patience is how long a release waits for a file system that does not answer.
const patience = time.Second

// object is what handles of this library name.
type object interface {
	handle.Object

	// wait gives the outcome of making the object.
	wait(ctx context.Context) error
}

// placer is an object that keeps something for its callers under its handle.
type placer interface{ place(h C.uint64_t) }

// put gives an object a handle and writes it to the caller's variable.
func put(o object, out *C.uint64_t) {
	*out = C.uint64_t(handles.Put(o))
	if p, ok := o.(placer); ok {
		p.place(*out)
	}
	C.mfi_handles_add(1)
}

//export mfgo_wait
func mfgo_wait(h C.uint64_t, ms C.int64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(ctx context.Context, o object) error {
			ctx, cancel := within(ctx, ms)
			defer cancel()
			return o.wait(ctx)
		})
	})
}

//export mfgo_cancel
func mfgo_cancel(h C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error { return handles.Cancel(uint64(h)) })
}

//export mfgo_release
func mfgo_release(h C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		gone, err := handles.Release(uint64(h))
		if gone {
			C.mfi_handles_add(-1)
		}
		return err
	})
}

//export mfgo_version
func mfgo_version(out *C.char, size C.size_t) {
	call(nil, func() error {
		room := unsafe.Slice((*byte)(unsafe.Pointer(out)), int(size))
		room[copy(room[:size-1], meshfeed.Version())] = 0
		return nil
	})
}
