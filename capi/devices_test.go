package main

import (
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

// TestTimeoutOfAPreflight: a preflight that timed out is an error with its text,
// because MF_TIMEOUT means "call again". Other errors stay the same.
func TestTimeoutOfAPreflight(t *testing.T) {
	slow := status.New(status.Timeout, "gomlxfeed", "its preflight did not end within 20s").WithHint("raise the timeout")
	got := asFailure(slow)
	if status.CodeOf(got) != status.Incompatible || got.Error() != slow.Error() || slow.Code != status.Timeout {
		t.Errorf("%v: %v", status.CodeOf(got), got)
	}
	for _, err := range []error{nil, errors.New("other"), status.New(status.Unsupported, "gomlxfeed", "no program was found")} {
		if got := asFailure(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
