package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
)

//export mfgo_loader_next
func mfgo_loader_next(h C.uint64_t, ms C.int64_t, out **C.mf_batch, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, o *loaderObject) error {
		o.inject("next")
		b, l, err := o.next(ctx, ms)
		if err != nil {
			return err
		}
		return deliver(l, b, out)
	})
}

// next returns the next batch, and waits for it if necessary.
func (o *loaderObject) next(ctx context.Context, ms C.int64_t) (*batch.Batch, *loader.Loader, error) {
	ctx, cancel := within(ctx, ms)
	defer cancel()
	l, err := o.Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	b, err := l.Next(ctx)
	return b, l, err
}

// deliver passes a batch and its memory to the caller.
func deliver(l *loader.Loader, b *batch.Batch, out **C.mf_batch) error {
	m := b.Memory().(*memory) // the loader has no other allocator
	m.describe(b.Step(), l.StateAfter(b))
	if _, err := b.Take(); err != nil {
		return err
	}
	C.mfi_slot_deliver(m.slot, out)
	return nil
}
