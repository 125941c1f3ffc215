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

func closed() error { return status.Closed("loader", "the loader is closed") }

func ended() error { return status.New(status.End, "loader", "there is no further batch in this loop") }

// interrupted gives the error of a call whose context ended.
func interrupted(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(status.Timeout, "no batch was ready in time: %w", ctx.Err()).WithHint("ask again: nothing is lost")
	}
	return fail(status.Cancelled, "the wait for a batch was cancelled: %w", ctx.Err())
}

// making runs what makes a loader. A panic of the source or the allocator is an
// error, and an error without a code gets one. The loader is nil with an error.
func making(try func() (*Loader, error)) (l *Loader, err error) {
	err = guard.Call("loader", func() error {
		l, err = try()
		return err
	})
	if err != nil {
		return nil, coded(err)
	}
	return l, nil
}

// coded gives an error that has a code. One that has none is of a program's own
// source or memory, or of a context.
func coded(err error) error {
	if own := new(status.Error); errors.As(err, &own) {
		return err
	}
	e := fail(status.CodeOf(err), "the source failed: %w", err)
	if e.Code == status.Internal {
		e.Code = status.IO
	}
	return e
}

// at says at which step an error happened. The code, the facts and the remedy
// stay those of the cause. An error without a code is of a program's own source
// or memory; its code is IO.
func at(p batch.Place, err error) error {
	e := &status.Error{
		Code: status.CodeOf(err), Op: "loader", Err: err,
		Msg: fmt.Sprintf("step %d of epoch %d: %v", p.Step, p.Epoch, err),
	}
	if own := new(status.Error); e.Code == status.Internal && !errors.As(err, &own) {
		e.Code = status.IO
	}
	if cause, ok := err.(*status.Error); ok {
		e.Msg = fmt.Sprintf("step %d of epoch %d: %s: %s", p.Step, p.Epoch, cause.Op, cause.Msg)
		e.Hint = cause.Hint
		e.Attrs = append(e.Attrs, cause.Attrs...)
	}
	return e.With("epoch", p.Epoch).With("step", p.Step).With("position", p.Position)
}
