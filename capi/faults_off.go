//go:build !meshfeed_faults

package main

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
)

// inject does nothing: faults are injected in test builds only.
func (*loaderObject) inject(string) {}

// instrument gives the source as it is.
func (*loaderObject) instrument(s source.Source) source.Source { return s }

func openFiles(paths []string, o arrowio.Options) (*arrowio.Dataset, error) {
	o.FaultHandler = signals()
	return arrowio.OpenFiles(context.Background(), paths, o)
}

// injecting says whether every call must come where faults are injected.
const injecting = false
