// Package guard turns panics into errors. It holds the only go statement
// outside tests, so that no goroutine of meshfeed can end the process: a
// panic in a worker becomes an error of the loader it works for, and other
// loaders go on.
//
// What no recover can stop stays fatal: running out of memory, stack
// overflow and concurrent map writes. Code that handles untrusted sizes or
// depths must bound them before use.
package guard

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// Call runs fn and gives its error. A panic in fn becomes an Internal error
// whose attribute "stack" holds the trace.
func Call(op string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(op, r)
		}
	}()
	return fn()
}

// Go runs fn on a new goroutine. If fn returns an error or panics, failed is
// called with the error on that goroutine; it must not panic itself.
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
		e = e.WithHint("%s panicked, which meshfeed called and is no part of it; the attribute \"stack\" has the trace", origin)
	}
	if cause, ok := r.(error); ok {
		e.Err = cause
	}
	return e
}

const module = "github.com/meshfeed/meshfeed/"

// own says whether a function is meshfeed's. Functions of package main are in the
// C library and in the command, whose build path is meshfeed's.
func own(function string) bool {
	if strings.HasPrefix(function, "main.") {
		info, ok := debug.ReadBuildInfo()
		return ok && strings.HasPrefix(info.Path, module)
	}
	return strings.HasPrefix(function, module)
}

// origin gives the function that panicked, or the one that called Go's library
// to do so. It is for the deferred function that recovers.
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
			return module // too deep to tell: better reported than not
		}
	}
}

// standard says whether a function is of Go's library: the paths of its
// packages begin without a dot.
func standard(function string) bool {
	path, _, nested := strings.Cut(function, "/")
	if !nested {
		return !strings.HasPrefix(function, "main.")
	}
	return !strings.Contains(path, ".")
}

// Fault runs fn with memory faults turned into panics, and gives any panic
// as an error of code DataLoss built by describe. It is the second line of
// defence where fn reads a mapping whose file may shrink.
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
