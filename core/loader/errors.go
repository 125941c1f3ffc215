package loader

import (
	"context"
	"errors"
	"fmt"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

func fail(code status.Code, format string, args ...any) *status.Error {
	return status.Errorf(code, "loader", format, args...)
}

func closedError() error { return status.Closed("loader", "the loader is closed") }

func loopEnded() error {
	return status.New(status.End, "loader", "there is no further batch in this loop")
}

// interrupted returns the error of a call after its context ended.
func interrupted(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(status.Timeout, "no batch was ready in time: %w", ctx.Err()).WithHint("ask again: nothing is lost")
	}
	return fail(status.Cancelled, "the wait for a batch was cancelled: %w", ctx.Err())
}

// construct calls a constructor. A panic of the source or the allocator becomes an
// error, and an error without a code gets one. With an error, the loader is nil.
func construct(try func() (*Loader, error)) (l *Loader, err error) {
	err = guard.Call("loader", func() error {
		l, err = try()
		return err
	})
	if err != nil {
		return nil, withCode(err)
	}
	return l, nil
}

// withCode returns an error that has a code.
func withCode(err error) error {
	if own := new(status.Error); errors.As(err, &own) {
		return err
	}
	return fail(codeOf(err), "the source failed: %w", err)
}

// codeOf returns the code of an error. An error of a program's own source or
// allocator has no code, and counts as IO.
func codeOf(err error) status.Code {
	code := status.CodeOf(err)
	if own := new(status.Error); code == status.Internal && !errors.As(err, &own) {
		return status.IO
	}
	return code
}

// atStep adds the step to an error. Code, attributes and hint come from the cause. The
// message leaves out the Go package of the cause, which is of no use to a user of Python or
// C.
func atStep(s batch.Step, err error) error {
	e := &status.Error{
		Code: codeOf(err), Op: "loader", Err: err,
		Msg: fmt.Sprintf("step %d of epoch %d: %v", s.Index, s.Epoch, err),
	}
	if cause, ok := err.(*status.Error); ok {
		e.Msg = fmt.Sprintf("step %d of epoch %d: %s", s.Index, s.Epoch, cause.Msg)
		e.Hint = cause.Hint
		e.Attrs = append(e.Attrs, cause.Attrs...)
	}
	return e.With("epoch", s.Epoch).With("step", s.Index).With("position", s.Position)
}
