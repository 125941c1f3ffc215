package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"errors"
	"strings"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/capi/internal/handle"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// handles is every object that the program holds.
var handles handle.Table

// call runs the body of an exported function, turns a panic into an error, and
// tells the caller how it went.
func call(e *C.mf_error, fn func() error) C.mf_status {
	err := guard.Call("capi", fn)
	if err == nil {
		C.mfi_error_clear(e)
		return C.MF_OK
	}
	return report(e, err)
}

// report fills the caller's error.
func report(e *C.mf_error, err error) C.mf_status {
	code := C.mf_status(status.CodeOf(err))
	if code > 0 || e == nil {
		C.mfi_error_clear(e)
		return code
	}
	op, message, hint, path := "", err.Error(), "", ""
	var known *status.Error
	if errors.As(err, &known) {
		op, message, hint, path = known.Op, known.Msg, known.Hint, place(known)
	}
	message, hint, path = whole(message), whole(hint), whole(path)
	return C.mfi_error_set(e, code, chars(op), C.size_t(len(op)), chars(message), C.size_t(len(message)),
		chars(hint), C.size_t(len(hint)), chars(path), C.size_t(len(path)))
}

// place gives the file or the place in a document that an error is about.
func place(e *status.Error) string {
	for _, key := range []string{"path", "file"} {
		if s, ok := e.Attr(key).(string); ok {
			return s
		}
	}
	return ""
}

// whole writes out the characters that would end a text in C: a path that a
// caller gave may have them.
func whole(s string) string { return strings.ReplaceAll(s, "\x00", `\0`) }

// chars gives the bytes of a string to a C function that keeps none of them.
func chars(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }

// bytesOf is chars for bytes.
func bytesOf(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// text copies what the caller passed in.
func text(p *C.mfi_text, n C.size_t) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))...)
}

// give makes a text the caller's.
func give(out *C.mf_bytes, b []byte) error {
	if !C.mfi_bytes_set(out, bytesOf(b), C.size_t(len(b))) {
		return status.Errorf(status.ResourceExhausted, "capi", "there is no memory for a text of %d bytes", len(b))
	}
	return nil
}

// use finds the object behind a handle and keeps it while fn runs.
func use[T handle.Object](h C.uint64_t, fn func(context.Context, T) error) error {
	e, err := handles.Pin(uint64(h))
	if err != nil {
		return err
	}
	defer e.Unpin()
	object, ok := e.Object.(T)
	if !ok {
		var want T
		return status.Errorf(status.InvalidState, "handle", "handle %#x names %v, not %v", uint64(h), e.Object, want)
	}
	if e.Context.Err() != nil {
		return context.Cause(e.Context)
	}
	return fn(e.Context, object)
}

// within bounds a context by the caller's timeout: negative is none.
func within(ctx context.Context, ms C.int64_t) (context.Context, context.CancelFunc) {
	if ms < 0 {
		return ctx, func() {}
	}
	const most = 1 << 40 // milliseconds: 34 years, and no overflow
	return context.WithTimeout(ctx, time.Duration(min(int64(ms), most))*time.Millisecond)
}
