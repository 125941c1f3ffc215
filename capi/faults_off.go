//go:build !meshfeed_faults

package main

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
)

// inject does nothing: only test builds inject faults.
func (*loaderObject) inject(string) {}

// instrument returns the source unchanged.
func (*loaderObject) instrument(s source.Source) source.Source { return s }

// openFiles opens a dataset. The handler turns a SIGBUS in a mapped file into an
// error.
func openFiles(ctx context.Context, paths []string, o arrowio.Options) (*arrowio.Dataset, error) {
	o.FaultHandler = faultHandler()
	return arrowio.OpenFiles(ctx, paths, o)
}

// injecting is true in test builds: every call then enters Go, where faults are
// injected.
const injecting = false
