package main

import (
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

// TestErrorsForC: a trial that timed out is a failure, because MF_TIMEOUT means
// "call again". Hints name the options of C.
func TestErrorsForC(t *testing.T) {
	slow := status.New(status.Timeout, "gomlxfeed", "its preflight did not end within 20s").
		WithHint("allow more time (OpenOptions.Timeout; --timeout of the command) if the device is slow to start or held by another program")
	absent := status.New(status.Unsupported, "gomlxfeed", "there is no program that can try it first").
		WithHint("call gomlxfeed.RunProbe first in main, or put a `meshfeed` built with -tags xla on PATH, or set OpenOptions.Prober; OpenOptions.NoPreflight loads the plugin at the risk of this process")
	for _, c := range []struct {
		err  error
		code status.Code
		text string
	}{
		{slow, status.Incompatible, `gomlxfeed: its preflight did not end within 20s; allow more time (timeout_ms) if the device is slow to start or held by another program`},
		{absent, status.Unsupported, "gomlxfeed: there is no program that can try it first; put a `meshfeed` built with -tags xla on PATH, or set prober; MF_NO_PREFLIGHT loads the plugin at the risk of this process"},
		{errors.New("other"), status.Internal, "other"},
	} {
		if got := forC(c.err); status.CodeOf(got) != c.code || got.Error() != c.text {
			t.Errorf("%v: %v", status.CodeOf(got), got)
		}
	}
	if forC(nil) != nil || slow.Code != status.Timeout {
		t.Error("nil is an error, or the error itself was changed")
	}
}
