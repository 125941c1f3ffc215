package main

/*
#include "internal.h"
*/
import "C"

import (
	"cmp"
	"context"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// loaderObject is the object behind an mf_loader handle: a loader, or a pass over one
// epoch.
type loaderObject struct {
	*future.Future[*loader.Loader]
	dataset *dataset
	pool    *pool
	ready   *readyQueue
}

func (*loaderObject) String() string { return "a loader" }

// Patience implements handle.Object.
func (l *loaderObject) Patience() time.Duration { return l.dataset.Patience() }

// Close ends the loader. Batches that were delivered keep their memory.
func (l *loaderObject) Close() error {
	until := time.Now().Add(patience)
	return l.Drop(l.Patience(), func(made *loader.Loader, err error) (failed error) {
		if err == nil {
			failed = guard.Call("capi", made.Close)
		}
		l.pool.release()
		l.ready.drop(err == nil)
		return cmp.Or(failed, l.dataset.release(until))
	})
}

// Stop implements stopper.
func (l *loaderObject) Stop() error {
	l.Cancel()
	made, err := l.Wait(context.Background())
	if err != nil {
		return err
	}
	return made.Close()
}

// newLoader starts to create a loader.
func newLoader(d *dataset, o loader.Options) (*loaderObject, error) {
	raiseProcs()
	prefetch := o.Prefetch
	if prefetch == 0 {
		prefetch = o.Layout.Prefetch()
	}
	pool, err := newPool(o.Layout, o.Process, max(prefetch, 0))
	if err != nil {
		return nil, err
	}
	o.Allocator = pool
	l := &loaderObject{dataset: d.retain(), pool: pool, ready: newReadyQueue()}
	l.Future = future.Start("capi", func(ctx context.Context) (*loader.Loader, error) {
		src, err := d.Wait(ctx)
		if err != nil {
			return nil, err
		}
		return l.ready.attach(loader.NewContext(ctx, l.instrument(src), o))
	})
	return l, nil
}

// oneEpoch creates a pass over one epoch, which shares the memory.
func (l *loaderObject) oneEpoch(epoch int64) *loaderObject {
	pass := &loaderObject{dataset: l.dataset.retain(), pool: l.pool.retain(), ready: newReadyQueue()}
	pass.Future = future.Start("capi", func(ctx context.Context) (*loader.Loader, error) {
		parent, err := l.Wait(ctx)
		if err != nil {
			return nil, err
		}
		return pass.ready.attach(parent.OneEpoch(epoch))
	})
	return pass
}

// remesh creates a loader that continues at the position of parent. It has its
// own memory, because its batches have other blocks.
func (l *loaderObject) remesh(parent *loader.Loader, lay *layout.Layout, process int) (*loaderObject, error) {
	pool, err := newPool(lay, process, parent.Prefetch())
	if err != nil {
		return nil, err
	}
	made, err := parent.Remesh(lay, process, pool)
	if err != nil {
		pool.release()
		return nil, err
	}
	queue := newReadyQueue()
	_, _ = queue.attach(made, nil)
	return &loaderObject{Future: future.Of(made), dataset: l.dataset.retain(), pool: pool, ready: queue}, nil
}

// loaderOptions reads the options of mf_loader_create. core/loader checks them.
func loaderOptions(l *layout.Layout, c *C.mfi_loader_options) (loader.Options, error) {
	o := loader.Options{
		Layout:        l,
		Process:       int(c.process),
		Processes:     int(c.processes),
		Order:         C.GoString(c.order),
		Seed:          int64(c.seed),
		Epochs:        int(c.epochs),
		Prefetch:      int(c.prefetch),
		IgnoreDataset: c.flags&C.MF_IGNORE_DATASET != 0,
		MaxHostBytes:  int64(c.max_host_bytes),
		Workers:       int(c.workers),
	}
	if c.state != nil {
		o.State = []byte(C.GoString(c.state))
	}
	fills, err := list("fill", c.fill, int64(c.n_fill))
	if err != nil || len(fills) == 0 {
		return o, err
	}
	o.Fill = map[string]any{}
	for _, f := range fills {
		t, err := elementType("loader", "the fill of field", C.GoString(f.field), f.dtype)
		if err != nil {
			return o, err
		}
		if o.Fill[C.GoString(f.field)], err = scalar(t, f.value); err != nil {
			return o, err
		}
	}
	return o, nil
}

//export mfgo_loader_create
func mfgo_loader_create(dh, lh C.uint64_t, opts *C.mfi_loader_options, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(dh, e, func(_ context.Context, d *dataset) error {
		return use(lh, func(_ context.Context, l *layoutObject) error {
			if err := l.Err(); err != nil {
				return err
			}
			o, err := loaderOptions(l.Layout, opts)
			if err != nil {
				return err
			}
			made, err := newLoader(d, o)
			if err == nil {
				put(made, out)
			}
			return err
		})
	})
}

//export mfgo_loader_one_epoch
func mfgo_loader_one_epoch(h C.uint64_t, epoch C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return with(h, e, func(_ context.Context, l *loaderObject) error {
		put(l.oneEpoch(int64(epoch)), out)
		return nil
	})
}

//export mfgo_loader_remesh
func mfgo_loader_remesh(h, lh C.uint64_t, process C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(o *loaderObject, l *loader.Loader) error {
		return use(lh, func(_ context.Context, lay *layoutObject) error {
			if err := lay.Err(); err != nil {
				return err
			}
			made, err := o.remesh(l, lay.Layout, int(process))
			if err == nil {
				put(made, out)
			}
			return err
		})
	})
}
