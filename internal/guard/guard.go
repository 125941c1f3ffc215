// Package guard turns panics into errors. It has the only go statement outside
// tests, so no goroutine of meshfeed can end the process: a panic becomes an error
// of the loader that started the goroutine, and other loaders are not affected.
//
// Some faults cannot be recovered: running out of memory, stack overflow and
// concurrent map writes. Code that handles untrusted sizes or depths must bound them
// before use.
package guard

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// Call calls fn and returns its error. A panic in fn becomes an Internal error with the
// trace as its attribute "stack".
func Call(op string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(op, r)
		}
	}()
	return fn()
}

// Go calls fn on a new goroutine. If fn returns an error or panics, it then calls
// failed with the error. Failed must not panic.
func Go(op string, fn func() error, failed func(error)) {
	go func() {
		if err := Call(op, fn); err != nil {
			failed(err)
		}
	}()
}

func panicked(op string, r any) error {
	e := status.Errorf(status.Internal, op, "panic: %v", r).With("stack", string(debug.Stack()))
	if origin := origin(); own(origin) {
		e = e.WithHint("this is a bug in meshfeed: please report it with the file and the options that led here")
	} else {
		e = e.WithHint("%s panicked, which is not part of meshfeed; the attribute \"stack\" has the trace", origin)
	}
	if cause, ok := r.(error); ok {
		e.Err = cause
	}
	return e
}

const module = "github.com/meshfeed/meshfeed/"

// own reports whether a function is part of meshfeed. A function of package main is, if the
// build path of the program is the C library or the command.
func own(function string) bool {
	if strings.HasPrefix(function, "main.") {
		info, ok := debug.ReadBuildInfo()
		return ok && strings.HasPrefix(info.Path, module)
	}
	return strings.HasPrefix(function, module)
}

// origin returns the function that panicked. If that is in Go's library, it returns
// the caller of the library. A deferred function calls it after recover.
func origin() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	panicking := false
	for {
		f, more := frames.Next()
		panicking = panicking || f.Function == "runtime.gopanic"
		if panicking && !standard(f.Function) {
			return f.Function
		}
		if !more {
			return module // the stack is too deep: assume a bug in meshfeed
		}
	}
}

// standard reports whether a function is in Go's library. The first elements of its
// package paths have no dot.
func standard(function string) bool {
	path, _, nested := strings.Cut(function, "/")
	if !nested {
		return !strings.HasPrefix(function, "main.")
	}
	return !strings.Contains(path, ".")
}

// Fault calls fn. If fn reads an address that causes a memory fault, Fault returns
// the error that describe makes of it. Other panics pass through. It protects reads
// of a mapped file that shrinks after its size was checked.
func Fault(fn func() error, describe func(cause any) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, isFault := r.(interface{ Addr() uintptr }); isFault {
				err = describe(fmt.Sprint(r))
				return
			}
			panic(r)
		}
	}()
	return fn()
}
