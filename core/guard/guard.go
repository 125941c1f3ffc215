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
	"runtime/debug"

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
	e := status.Errorf(status.Internal, op, "panic: %v", r).
		WithHint("this is a bug in meshfeed: please report it with the file and the options that led here").
		With("stack", string(debug.Stack()))
	if cause, ok := r.(error); ok {
		e.Err = cause
	}
	return e
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
