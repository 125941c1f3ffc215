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
	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/capi/internal/handle"
	"github.com/meshfeed/meshfeed/core/view/raster"
)

// patience bounds how long a release, or the exit of the program, waits for a
// file system that does not respond.
const patience = time.Second

// object is a Go object that a C caller uses by its handle.
type object interface {
	handle.Object

	// Ready waits until the object is created, and returns the outcome.
	Ready(ctx context.Context) error
}

// ready is embedded in objects that are complete as soon as they have a handle.
type ready struct{}

func (ready) Ready(context.Context) error { return nil }

// stopper is an object with work in the background.
type stopper interface {
	// Stop ends that work, and returns when it has ended. The handle stays
	// valid.
	Stop() error
}

// put adds an object and writes its handle to the caller's variable.
func put(o object, out *C.uint64_t) {
	*out = C.uint64_t(handles.Put(o))
	if l, ok := o.(*loaderObject); ok {
		l.ready.bind(*out)
	}
	C.mfi_handles_add(1)
}

//export mfgo_wait
func mfgo_wait(h C.uint64_t, ms C.int64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, o object) error {
		ctx, cancel := within(ctx, ms)
		defer cancel()
		return o.Ready(ctx)
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

// stopAll ends all calls and all background work before the program exits,
// because the exit frees memory that they use. It waits for their end, but at
// most for patience. It frees no batch, because other threads may hold it, and
// runs no callback of the caller.
func stopAll() {
	until, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stops []*future.Future[struct{}]
	for _, o := range handles.CancelAll() {
		if s, ok := o.(stopper); ok {
			stops = append(stops, future.Start("capi", func(context.Context) (struct{}, error) { return struct{}{}, s.Stop() }))
		}
	}
	for _, stop := range stops {
		_ = stop.Ready(until) // the exit has no use for an error
	}
	handles.Idle(until)
}

//export mfgo_cancel_all
func mfgo_cancel_all() {
	call(nil, func() error { stopAll(); return nil })
}

//export mfgo_version
func mfgo_version(out *C.char, size C.size_t) {
	call(nil, func() error { name(out, size, meshfeed.Version()); return nil })
}

//export mfgo_jpeg_decoder
func mfgo_jpeg_decoder(out *C.char, size C.size_t) {
	call(nil, func() error { name(out, size, raster.JPEGDecoder()); return nil })
}

// name copies a text and a zero byte to out, which has room for size bytes.
func name(out *C.char, size C.size_t, text string) {
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(out)), int(size))
	buffer[copy(buffer[:size-1], text)] = 0
}
