package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
)

// remesh makes a loader that goes on where parent stands. It has memory of its
// own, since its batches have other blocks.
func (l *loaderObject) remesh(parent *loader.Loader, lay *layout.Layout, process int64) (*loaderObject, error) {
	pool, err := newPool(lay, lay.Process(int(process)).Blocks, parent.Prefetch())
	if err != nil {
		return nil, err
	}
	made, err := parent.Remesh(lay, int(process), pool)
	if err != nil {
		pool.close()
		return nil, err
	}
	ready := newReadyQueue()
	_, _ = ready.attach(made, nil)
	return &loaderObject{
		made: future.Of(made), giveUp: func() {}, dataset: l.dataset.keep(), memory: (&sharedPool{pool: pool}).keep(), ready: ready,
	}, nil
}

//export mfgo_loader_remesh
func mfgo_loader_remesh(h, lh C.uint64_t, process C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(lh, func(_ context.Context, lay *layoutObject) error {
			if err := lay.Err(); err != nil {
				return err
			}
			return useLoader(h, func(o *loaderObject, l *loader.Loader) error {
				made, err := o.remesh(l, lay.Layout, int64(process))
				if err == nil {
					put(made, out)
				}
				return err
			})
		})
	})
}
