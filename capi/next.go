package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
)

// over is a context whose time has passed: a call with it takes what stands
// ready.
var over = func() context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), time.Time{})
	cancel()
	return ctx
}()

// bounded is a context whose time begins to run when somebody waits for its
// end: a call that gets what it wants at once costs no timer, for which Go wakes
// a thread.
type bounded struct {
	context.Context
	ms  C.int64_t
	end context.CancelFunc // of the timer; nil before it runs
}

// Done implements context.Context, for one goroutine.
func (b *bounded) Done() <-chan struct{} {
	if b.end == nil {
		b.Context, b.end = within(b.Context, b.ms)
	}
	return b.Context.Done()
}

// stop ends the timer.
func (b *bounded) stop() {
	if b.end != nil {
		b.end()
	}
}

//export mfgo_loader_next
func mfgo_loader_next(h C.uint64_t, ms C.int64_t, out **C.mf_batch, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return use(h, func(ctx context.Context, o *loaderObject) error {
			o.inject("next")
			b, l, err := o.next(ctx, ms)
			if err != nil {
				return err
			}
			return deliver(l, b, out)
		})
	})
}

// next gives a batch that stands ready, or waits for one.
func (o *loaderObject) next(ctx context.Context, ms C.int64_t) (*batch.Batch, *loader.Loader, error) {
	if ms == 0 {
		ctx = over
	} else {
		b := &bounded{Context: ctx, ms: ms}
		defer b.stop()
		ctx = b
	}
	l, err := o.made.Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	b, err := l.Next(ctx)
	return b, l, err
}

// deliver makes a batch the caller's: its memory leaves Go.
func deliver(l *loader.Loader, b *batch.Batch, out **C.mf_batch) error {
	m := b.Memory().(*memory) // the loader has no other allocator
	m.describe(b.Place(), l.StateAfter(b))
	if _, err := b.Take(); err != nil {
		return err
	}
	C.mfi_slot_deliver(m.slot, out)
	return nil
}
