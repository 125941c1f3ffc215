//go:build meshfeed_faults

package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
)

// armed holds, per loader, the place of its next panic: "next", "restore" or
// "worker".
var armed sync.Map

// inject panics once if the loader is armed for the place.
func (l *loaderObject) inject(place string) {
	if armed.CompareAndDelete(l, place) {
		panic("injected in " + place)
	}
}

// instrument lets gathers of the loader's workers panic.
func (l *loaderObject) instrument(s source.Source) source.Source { return faultySource{s, l} }

type faultySource struct {
	source.Source
	loader *loaderObject
}

func (s faultySource) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := s.Source.Gatherer(parts)
	return faultyGatherer{g, s.loader}, err
}

type faultyGatherer struct {
	source.Gatherer
	loader *loaderObject
}

func (g faultyGatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	g.loader.inject("worker")
	return g.Gatherer.Gather(ctx, records, jobs)
}

// openFiles hangs for the path "hang", as a network file system may.
func openFiles(paths []string, o arrowio.Options) (*arrowio.Dataset, error) {
	if paths[0] == "hang" {
		select {}
	}
	return arrowio.OpenFiles(paths, o)
}

// mf_fault arms a loader. It is no part of the library that ships.
//
//export mf_fault
func mf_fault(h C.mf_loader, place *C.char) C.mf_status {
	return call(nil, func() error {
		return use(h, func(_ context.Context, l *loaderObject) error {
			armed.Store(l, C.GoString(place))
			return nil
		})
	})
}
