package status_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

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
