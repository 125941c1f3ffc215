//go:build !cgo || !(linux || darwin)

package xla

import (
	"context"
	"runtime"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

// opener stands where plugins cannot be loaded.
type opener struct{}

// Probe implements gomlxfeed.Opener.
func (opener) Probe(_ context.Context, spec gomlxfeed.Spec, _ func(string)) (gomlxfeed.Facts, error) {
	return gomlxfeed.Facts{}, unsupported(spec)
}

// Open implements gomlxfeed.Opener.
func (opener) Open(_ context.Context, spec gomlxfeed.Spec, _ *gomlxfeed.Facts) (gomlxfeed.Opened, error) {
	return gomlxfeed.Opened{}, unsupported(spec)
}

func unsupported(spec gomlxfeed.Spec) error {
	return status.Errorf(status.Unsupported, "gomlxfeed", "%q: plugins need cgo on Linux or macOS, and this program was built without, for %s/%s", spec, runtime.GOOS, runtime.GOARCH).
		WithHint(`build it with CGO_ENABLED=1 and a C compiler, or use "virtual:N", which needs neither`)
}
