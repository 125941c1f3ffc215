//go:build !cgo || !(linux || darwin)

package xla

import (
	"context"
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
func (opener) Open(context.Context, gomlxfeed.Spec, *gomlxfeed.Facts) (gomlxfeed.Opened, error) {
	return gomlxfeed.Opened{}, unsupported()
}

func unsupported() error {
	return status.Errorf(status.Unsupported, "gomlxfeed", "plugins need cgo on Linux or macOS, and this program was built without, for %s/%s", runtime.GOOS, runtime.GOARCH).
		WithHint(`build it with CGO_ENABLED=1 and a C compiler, or use "virtual:N", which needs neither`)
}
