// Package status has the errors of meshfeed.
//
// Every error that a package returns is an [*Error]. It has a [Code] that Go, C,
// Python and the browser share, the operation that failed, a message with expected
// and actual values, and a hint with what to do. The text is one sentence:
//
//	sharding: dimension 0 of shape (30, 128) is split 4 ways by axis "data" (size 4), but 30 % 4 = 2; use a batch of 28 or 32
//
// The numbers of the codes are part of the C ABI. They never change.
package status

import (
	"context"
	"errors"
	"fmt"
)

// Code is the kind of outcome of a call. Zero is success, positive codes are
// outcomes without a message, and negative codes are errors.
type Code int32

// The codes, with the builtin exception that Python raises for each.
const (
	OK                Code = 0
	Timeout           Code = 1   // nothing was ready in time; ask again
	End               Code = 2   // no further batch follows
	InvalidArgument   Code = -1  // ValueError
	OutOfRange        Code = -2  // IndexError
	NotFound          Code = -3  // FileNotFoundError
	InvalidState      Code = -4  // RuntimeError: closed, stale handle, wrong order of calls
	Incompatible      Code = -5  // ValueError: a saved state, dataset or ABI does not match
	DataLoss          Code = -6  // OSError: damaged or truncated data
	IO                Code = -7  // OSError
	ResourceExhausted Code = -8  // MemoryError
	Unsupported       Code = -9  // NotImplementedError
	Cancelled         Code = -10 // the caller, or Close, ended the call
	Forked            Code = -11 // RuntimeError: used in a forked child
	Internal          Code = -12 // RuntimeError: a bug in meshfeed, or a panic
)

// names has the names of the codes from Internal, the lowest, to End.
var names = [...]string{
	"Internal", "Forked", "Cancelled", "Unsupported", "ResourceExhausted", "IO", "DataLoss", "Incompatible",
	"InvalidState", "NotFound", "OutOfRange", "InvalidArgument", "OK", "Timeout", "End",
}

// Codes lists every code: success, outcomes, errors.
func Codes() []Code {
	list := []Code{OK, Timeout, End}
	for c := InvalidArgument; c >= Internal; c-- {
		list = append(list, c)
	}
	return list
}

// String returns the name of the code in Go.
func (c Code) String() string {
	if c >= Internal && c <= End {
		return names[c-Internal]
	}
	return fmt.Sprintf("Code(%d)", int32(c))
}

// Attr is a fact about an error that a program may read: a file, a record, a size.
type Attr struct {
	Key   string
	Value any
}

// Error is an error with everything that a caller needs to act on it.
type Error struct {
	Code  Code
	Op    string // the package or verb that failed, such as "sharding"
	Msg   string // expected and actual, without a period
	Hint  string // what to do; may be empty
	Attrs []Attr
	Err   error // the cause; may be nil
}

// New makes an error with a literal message.
func New(code Code, op, msg string) *Error { return &Error{Code: code, Op: op, Msg: msg} }

// Errorf makes an error with a formatted message. An argument of %w becomes the
// cause.
func Errorf(code Code, op, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Op: op, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint adds what to do about the error, and returns the same error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// With adds a fact, and returns the same error.
func (e *Error) With(key string, value any) *Error {
	e.Attrs = append(e.Attrs, Attr{key, value})
	return e
}

// Attr returns the value of a fact, or nil.
func (e *Error) Attr(key string) any {
	for _, a := range e.Attrs {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}

// Error returns "op: message; hint".
func (e *Error) Error() string {
	s := e.Msg
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors that programs compare with [errors.Is].
var (
	ErrEnd    = errors.New("there is no further batch") // every error of code End
	ErrClosed = errors.New("closed")                    // a use of a closed object
)

// Is makes an End error match [ErrEnd], and a Cancelled error
// [context.Canceled].
func (e *Error) Is(target error) bool {
	return e.Code == End && target == ErrEnd || e.Code == Cancelled && target == context.Canceled
}

// Closed makes the InvalidState error of a use of a closed object. It matches
// [ErrClosed].
func Closed(op, format string, args ...any) *Error {
	e := Errorf(InvalidState, op, format, args...)
	e.Err = ErrClosed
	return e
}

// Ended returns the error of a call that the end of its context ended, given the error of the context:
// Cancelled or Timeout. It returns nil for nil.
func Ended(op, call string, err error) error {
	if err == nil {
		return nil
	}
	return Errorf(CodeOf(err), op, "%s was ended: %w", call, err)
}

// CodeOf returns the code of err: OK for nil, the code of the outermost [*Error] in
// its chain, Cancelled and Timeout for the errors of package context, and Internal
// for any other error.
func CodeOf(err error) Code {
	e, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return OK
	case ok:
		return e.Code
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Internal
}
