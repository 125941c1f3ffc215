package status_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

func TestErrorText(t *testing.T) {
	err := status.Errorf(status.InvalidArgument, "sharding", "size %d", 3).WithHint("use %d", 4)
	if got, want := err.Error(), "sharding: size 3; use 4"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := status.New(status.IO, "", "100% full").Error(), "100% full"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorChain(t *testing.T) {
	err := fmt.Errorf("outer: %w", status.Errorf(status.NotFound, "arrowio", "open: %w", fs.ErrNotExist).With("path", "a.arrow"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause was lost")
	}
	var e *status.Error
	if !errors.As(err, &e) || e.Attr("path") != "a.arrow" || e.Attr("other") != nil {
		t.Errorf("attributes were lost: %+v", e)
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want status.Code
	}{
		{nil, status.OK},
		{errors.New("x"), status.Internal},
		{context.Canceled, status.Cancelled},
		{context.DeadlineExceeded, status.Timeout},
		{fmt.Errorf("x: %w", status.New(status.DataLoss, "a", "b")), status.DataLoss},
	} {
		if got := status.CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %v, want %v", c.err, got, c.want)
		}
	}
	if !errors.Is(status.New(status.Cancelled, "loader", "closed"), context.Canceled) {
		t.Error("Cancelled should match context.Canceled")
	}
}

func TestEnded(t *testing.T) {
	err := status.Ended("view", "the call", context.DeadlineExceeded)
	if status.CodeOf(err) != status.Timeout || !errors.Is(err, context.DeadlineExceeded) || err.Error() != "view: the call was ended: context deadline exceeded" {
		t.Errorf("got %v", err)
	}
	if err := status.Ended("view", "the call", nil); err != nil {
		t.Errorf("without an end: %v", err)
	}
}

func TestCodesAreNamed(t *testing.T) {
	codes := status.Codes()
	if len(codes) != 15 || codes[len(codes)-1] != status.Internal {
		t.Fatalf("Codes() = %v", codes)
	}
	for _, c := range codes {
		if c.String() == fmt.Sprintf("Code(%d)", int32(c)) {
			t.Errorf("code %d has no name", int32(c))
		}
	}
	for c, want := range map[status.Code]string{status.Internal: "Internal", status.IO: "IO", status.OK: "OK", status.End: "End"} {
		if c.String() != want {
			t.Errorf("code %d is named %s, want %s", int32(c), c, want)
		}
	}
	if got := status.Code(99).String(); got != "Code(99)" {
		t.Errorf("got %q", got)
	}
}

func TestSentinels(t *testing.T) {
	end := fmt.Errorf("wrapped: %w", status.New(status.End, "loader", "there is no further batch in this loop"))
	closed := fmt.Errorf("wrapped: %w", status.Closed("loader", "the loader is closed"))
	cancelled := status.New(status.Cancelled, "loader", "stopped")
	for _, target := range []error{status.ErrEnd, status.ErrClosed, context.Canceled} {
		for _, err := range []error{end, closed, cancelled} {
			want := err == end && target == status.ErrEnd || err == closed && target == status.ErrClosed || error(cancelled) == err && target == context.Canceled
			if errors.Is(err, target) != want {
				t.Errorf("errors.Is(%v, %v) is %v", err, target, !want)
			}
		}
	}
	if got := status.Closed("loader", "the %s is closed", "loader"); got.Code != status.InvalidState || got.Error() != "loader: the loader is closed" {
		t.Errorf("%v, %v", got.Code, got)
	}
}
