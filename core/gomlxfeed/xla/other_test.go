//go:build !cgo || !(linux || darwin)

package xla

import (
	"context"
	"runtime"
	"testing"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestUnsupported checks the error of builds that cannot load plugins.
func TestUnsupported(t *testing.T) {
	want := "gomlxfeed: plugins need cgo on Linux or macOS, and this program was built without, for " + runtime.GOOS + "/" + runtime.GOARCH +
		`; build it with CGO_ENABLED=1 and a C compiler, or use "virtual:N", which needs neither`
	_, probed := opener{}.Probe(context.Background(), gomlxfeed.Spec{}, nil)
	_, opened := opener{}.Open(context.Background(), gomlxfeed.Spec{}, nil)
	for _, err := range []error{probed, opened} {
		if err == nil || err.Error() != want || status.CodeOf(err) != status.Unsupported {
			t.Errorf("got  %v (%v)\nwant %s", err, status.CodeOf(err), want)
		}
	}
}
