package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/capi/internal/options"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// loaderObject is what an mf_loader names: a loader, or a pass that mf_loader_one_epoch
// made of one.
type loaderObject struct {
	made    *future.Future[*loader.Loader]
	giveUp  context.CancelFunc // ends the making
	dataset *dataset
	memory  *sharedPool
	ready   *readyQueue
}

func (*loaderObject) String() string { return "a loader" }

// Patience implements handle.Object.
func (l *loaderObject) Patience() time.Duration { return l.dataset.Patience() }

// place implements placer.
func (l *loaderObject) place(h C.uint64_t) { l.ready.bind(h) }

func (l *loaderObject) wait(ctx context.Context) error {
	_, err := l.made.Wait(ctx)
	return err
}

// Close ends the loader and drops what it kept. Batches that were handed out
// keep their memory.
func (l *loaderObject) Close() error {
	l.giveUp()
	until := time.Now().Add(patience)
	var failed error
	l.made.Drop(l.Patience(), func(made *loader.Loader, err error) {
		if err == nil {
			failed = guard.Call("capi", made.Close)
		}
		l.memory.drop()
		l.ready.drop(err == nil)
		if err := l.dataset.leave(until); failed == nil {
			failed = err
		}
	})
	return failed
}

// stop implements stopper.
func (l *loaderObject) stop() error {
	l.giveUp()
	made, err := l.made.Wait(context.Background())
	if err != nil {
		return err
	}
	return made.Close()
}

// sharedPool is the memory of a loader and its passes.
type sharedPool struct {
	*pool
	owners atomic.Int32
}

func (p *sharedPool) keep() *sharedPool {
	p.owners.Add(1)
	return p
}

func (p *sharedPool) drop() {
	if p.owners.Add(-1) == 0 {
		p.close()
	}
}

// newLoader begins to make a loader.
func newLoader(d *dataset, o loader.Options) (*loaderObject, error) {
	raiseProcs()
	prefetch := o.Prefetch
	if prefetch == 0 {
		prefetch = o.Layout.Prefetch()
	}
	pool, err := newPool(o.Layout, o.Layout.Process(o.Process).Blocks, max(prefetch, 0))
	if err != nil {
		return nil, err
	}
	o.Allocator = pool
	ctx, cancel := context.WithCancel(context.Background())
	l := &loaderObject{giveUp: cancel, dataset: d.keep(), memory: (&sharedPool{pool: pool}).keep(), ready: newReadyQueue()}
	l.made = future.Start("capi", func() (*loader.Loader, error) {
		src, err := d.opened.Wait(ctx)
		if err != nil {
			return nil, err
		}
		return l.ready.attach(loader.NewContext(ctx, l.instrument(src), o))
	})
	return l, nil
}

// oneEpoch makes a pass over one epoch, which shares the memory.
func (l *loaderObject) oneEpoch(epoch int64) *loaderObject {
	ctx, cancel := context.WithCancel(context.Background())
	pass := &loaderObject{giveUp: cancel, dataset: l.dataset.keep(), memory: l.memory.keep(), ready: newReadyQueue()}
	pass.made = future.Start("capi", func() (*loader.Loader, error) {
		parent, err := l.made.Wait(ctx)
		if err != nil {
			return nil, err
		}
		return pass.ready.attach(parent.OneEpoch(epoch))
	})
	return pass
}

// loaderOptions reads the options of mf_loader_create.
func loaderOptions(l *layout.Layout, json []byte) (loader.Options, error) {
	o := options.Parse("loader", json)
	out := loader.Options{
		Layout:        l,
		Process:       o.IntFrom("process", 0, 0),
		Processes:     o.IntFrom("processes", 0, 0),
		Shuffle:       o.Bool("shuffle", false),
		Seed:          o.Int("seed", 0),
		Epochs:        o.IntFrom("epochs", -1, 0),
		State:         o.Raw("state"),
		IgnoreDataset: o.Bool("ignore_dataset", false),
		MaxHostBytes:  o.Int("max_host_bytes", 0),
		Workers:       o.IntFrom("workers", 0, 0),
	}
	if o.Has("shuffle") && !out.Shuffle {
		out.Order = sampler.Sequential
	}
	if o.Has("order") {
		out.Order = o.String("order", "")
		if o.Has("shuffle") {
			o.Refuse("order", `the order is given by "shuffle" already`)
		}
	}
	if o.Has("prefetch") {
		out.Prefetch = o.IntFrom("prefetch", 0, 0)
		if out.Prefetch == 0 {
			out.Prefetch = -1 // makes each batch when it is asked for
		}
	}
	if o.Has("epochs") && out.Epochs == 0 {
		o.Refuse("epochs", "expected a number of epochs, or -1 for no end, but found 0")
	}
	fill := o.Object("fill")
	for _, field := range fill.Keys() {
		if out.Fill == nil {
			out.Fill = map[string]any{}
		}
		out.Fill[field] = fill.Scalar(field)
	}
	o.Join(fill)
	return out, o.Err()
}

//export mfgo_loader_create
func mfgo_loader_create(dh, lh C.uint64_t, opts *C.mfi_text, n C.size_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(dh, func(_ context.Context, d *dataset) error {
			return use(lh, func(_ context.Context, l *layoutObject) error {
				if err := l.Err(); err != nil {
					return err
				}
				o, err := loaderOptions(l.Layout, text(opts, n))
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
	})
}

//export mfgo_loader_one_epoch
func mfgo_loader_one_epoch(h C.uint64_t, epoch C.int64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(_ context.Context, l *loaderObject) error {
			put(l.oneEpoch(int64(epoch)), out)
			return nil
		})
	})
}
