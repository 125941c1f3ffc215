package gomlxfeed

import (
	"context"

	"github.com/meshfeed/meshfeed/core/status"
)

// preflight tries a plugin in a child process.
func preflight(_ context.Context, s Spec, _ OpenOptions) (Facts, error) {
	return Facts{}, status.Errorf(status.Unsupported, "gomlxfeed", "%q: there is no preflight yet", s)
}
