package main

import (
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

// TestHeard: an opening that took too long is a failure, since MF_TIMEOUT asks
// to call again, and options have the names that they have in C.
func TestHeard(t *testing.T) {
	slow := status.New(status.Timeout, "gomlxfeed", "its preflight did not end within 20s").
		WithHint("allow more time (OpenOptions.Timeout; --timeout of the command) if the device is slow to start or held by another program")
	absent := status.New(status.Unsupported, "gomlxfeed", "there is no program that can try it first").
		WithHint("call gomlxfeed.RunProbe first in main, or put a `meshfeed` built with -tags xla on PATH, or set OpenOptions.Prober; OpenOptions.NoPreflight loads the plugin at the risk of this process")
	for _, c := range []struct {
		err  error
		code status.Code
		text string
	}{
		{slow, status.Incompatible, `gomlxfeed: its preflight did not end within 20s; allow more time ("timeout_ms") if the device is slow to start or held by another program`},
		{absent, status.Unsupported, "gomlxfeed: there is no program that can try it first; put a `meshfeed` built with -tags xla on PATH, or set \"prober\"; \"preflight\": false loads the plugin at the risk of this process"},
		{errors.New("other"), status.Internal, "other"},
	} {
		if got := heard(c.err); status.CodeOf(got) != c.code || got.Error() != c.text {
			t.Errorf("%v: %v", status.CodeOf(got), got)
		}
	}
	if heard(nil) != nil || slow.Code != status.Timeout {
		t.Error("nil is an error, or the error itself was changed")
	}
}
