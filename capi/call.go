package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/capi/internal/handle"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// handles holds every object of the program.
var handles handle.Table

// call runs the body of an exported function, turns a panic into an error, and
// reports the outcome to the caller.
func call(e *C.mf_error, fn func() error) C.mf_status {
	err := guard.Call("capi", fn)
	if err == nil {
		C.mfi_error_clear(e)
		return C.MF_OK
	}
	return report(e, err)
}

// with is like call, and passes the object behind a handle to fn.
func with[T handle.Object](h C.uint64_t, e *C.mf_error, fn func(context.Context, T) error) C.mf_status {
	return call(e, func() error { return use(h, fn) })
}

// made is an object that is made in the background.
type made[T any] interface {
	handle.Object
	Wait(context.Context) (T, error)
}

// withMade is like with, for an object that is made in the background. It waits until that
// has ended.
func withMade[O made[T], T any](h C.uint64_t, e *C.mf_error, fn func(context.Context, O, T) error) C.mf_status {
	return with(h, e, func(ctx context.Context, o O) error {
		value, err := o.Wait(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, o, value)
	})
}

// withLoader is withMade for a loader. The calls take no context: they do not wait.
func withLoader(h C.uint64_t, e *C.mf_error, fn func(*loaderObject, *loader.Loader) error) C.mf_status {
	return withMade(h, e, func(_ context.Context, o *loaderObject, l *loader.Loader) error { return fn(o, l) })
}

// use finds the object behind a handle and keeps it while fn runs.
func use[T handle.Object](h C.uint64_t, fn func(context.Context, T) error) error {
	e, object, err := pin[T](uint64(h))
	if err != nil {
		return err
	}
	defer e.Unpin()
	return fn(e.Context, object)
}

// useAll finds the objects behind handles and keeps them while fn runs. The context of fn
// ends when the context of any handle ends.
func useAll[T handle.Object](ids []uint64, fn func(context.Context, []T) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	objects := make([]T, len(ids))
	for i, id := range ids {
		e, object, err := pin[T](id)
		if err != nil {
			return err
		}
		defer e.Unpin()
		defer context.AfterFunc(e.Context, func() { cancel(context.Cause(e.Context)) })()
		objects[i] = object
	}
	return fn(ctx, objects)
}

// pin finds the object behind a handle and keeps it until Unpin.
func pin[T handle.Object](id uint64) (e *handle.Entry, object T, err error) {
	if e, err = handles.Pin(id); err != nil {
		return nil, object, err
	}
	object, ok := e.Object.(T)
	switch {
	case !ok:
		err = status.Errorf(status.InvalidState, "handle", "handle %#x names %v, not %v", id, e.Object, object)
	case e.Context.Err() != nil:
		err = context.Cause(e.Context)
	}
	if err != nil {
		e.Unpin()
	}
	return e, object, err
}

// report fills the caller's error.
func report(e *C.mf_error, err error) C.mf_status {
	code := C.mf_status(status.CodeOf(err))
	if code > 0 || e == nil {
		C.mfi_error_clear(e)
		return code
	}
	op, message, hint, path := "", err.Error(), "", ""
	if known, ok := errors.AsType[*status.Error](err); ok {
		op, message, hint, path = known.Op, known.Msg, known.Hint, pathOf(known)
	}
	message, hint, path = escaped(inC(message)), escaped(inC(hint)), escaped(path)
	return C.mfi_error_set(e, code, chars(op), C.size_t(len(op)), chars(message), C.size_t(len(message)),
		chars(hint), C.size_t(len(hint)), chars(path), C.size_t(len(path)))
}

// pathOf returns the file or the JSON Pointer of an error.
func pathOf(e *status.Error) string {
	for _, key := range []string{"path", "file"} {
		if s, ok := e.Attr(key).(string); ok {
			return s
		}
	}
	return ""
}

// inC writes the options of a Go error as C and Python name them: max_host_bytes for
// Options.MaxHostBytes.
func inC(text string) string { return wording.Options(text, "", "_") }

// escaped replaces NUL, which would end a text in C. A name in a layout document
// may contain it.
func escaped(s string) string { return strings.ReplaceAll(s, "\x00", `\0`) }

// chars passes the bytes of a string to a C function that does not keep them.
func chars(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }

// text copies a text argument.
func text(p *C.mfi_text, n C.size_t) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))...)
}

// list returns the n elements at p, which the caller passed. Name is for the error.
func list[T any](name string, p *T, n int64) ([]T, error) {
	if n < 0 || n > 0 && p == nil {
		return nil, status.Errorf(status.InvalidArgument, "meshfeed", "%s has %d elements at %p", name, n, p)
	}
	return unsafe.Slice(p, int(n)), nil
}

// writeText copies a text to memory that belongs to the caller.
func writeText(out *C.mf_bytes, b []byte) error {
	if !C.mfi_bytes_set(out, (*C.char)(unsafe.Pointer(unsafe.SliceData(b))), C.size_t(len(b))) {
		return noMemory("a text of %d bytes", len(b))
	}
	return nil
}

// writeJSON encodes a value for the caller.
func writeJSON(out *C.mf_bytes, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return writeText(out, b)
}

func noMemory(format string, args ...any) *status.Error {
	return status.Errorf(status.ResourceExhausted, "capi", "there is no memory for "+format, args...)
}

// within returns a context that ends after the caller's timeout. A negative timeout waits
// without a limit.
func within(ctx context.Context, ms C.int64_t) (context.Context, context.CancelFunc) {
	if ms < 0 {
		return ctx, func() {}
	}
	const most = 1 << 40 // milliseconds: 34 years, without overflow
	return context.WithTimeout(ctx, time.Duration(min(int64(ms), most))*time.Millisecond)
}
