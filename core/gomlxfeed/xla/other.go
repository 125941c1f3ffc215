//go:build !cgo || !(linux || darwin)

package xla

import (
	"context"
	"fmt"
	"runtime"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

// opener reports that this build cannot load plugins.
type opener struct{}

// Probe implements gomlxfeed.Opener.
func (opener) Probe(context.Context, gomlxfeed.Spec, func(string)) (gomlxfeed.Facts, error) {
	return gomlxfeed.Facts{}, unsupported()
}

// Open implements gomlxfeed.Opener.
func (opener) Open(_ context.Context, spec gomlxfeed.Spec, _ *gomlxfeed.Facts) (gomlxfeed.Opened, error) {
	e := unsupported()
	e.Msg = fmt.Sprintf("%q was not opened: %s", spec, e.Msg)
	return gomlxfeed.Opened{}, e
}

func unsupported() *status.Error {
	return status.Errorf(status.Unsupported, "gomlxfeed", "plugins need cgo on Linux or macOS, and this program was built without, for %s/%s", runtime.GOOS, runtime.GOARCH).
		WithHint(`build it with CGO_ENABLED=1 and a C compiler, or use "virtual:N", which needs neither`)
}
