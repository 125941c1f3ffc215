package main

/*
#include "internal.h"
*/
import "C"

import (
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
)

// readyQueue implements loader.ReadyQueue in C, so that a caller can take a ready
// batch without entering Go. If it is nil, callers always enter Go.
type readyQueue struct{ c *C.mfi_queue }

// newReadyQueue makes a queue with three owners: a loader, the object of its
// handle, and the call that makes the handle. It returns nil if memory is short,
// and in builds that inject faults for tests.
func newReadyQueue() *readyQueue {
	if injecting {
		return nil
	}
	c := C.mfi_queue_new()
	if c == nil {
		return nil
	}
	return &readyQueue{c}
}

// bind lets callers find the queue by a handle, and ends the ownership of the call
// that made the handle.
func (q *readyQueue) bind(h C.uint64_t) {
	if q != nil {
		C.mfi_queue_bind(h, q.c)
		C.mfi_queue_drop(q.c)
	}
}

// attach connects the queue to a loader, unless making the loader failed.
func (q *readyQueue) attach(l *loader.Loader, err error) (*loader.Loader, error) {
	if q != nil && err == nil {
		l.SetReadyQueue(q)
	}
	return l, err
}

// drop ends the ownership of the handle's object. If no loader was made, it also
// ends the ownership of the loader.
func (q *readyQueue) drop(made bool) {
	if q == nil {
		return
	}
	if !made {
		q.Close()
	}
	C.mfi_queue_drop(q.c)
}

// Offer implements loader.ReadyQueue.
func (q *readyQueue) Offer(b *batch.Batch, after loader.State) bool {
	m := b.Memory().(*memory)
	m.describe(b.Step(), after)
	return bool(C.mfi_queue_offer(q.c, m.slot))
}

// Expect implements loader.ReadyQueue.
func (q *readyQueue) Expect(soon bool) { C.mfi_queue_expect(q.c, C.bool(soon)) }

// Taken implements loader.ReadyQueue.
func (q *readyQueue) Taken() (int64, time.Duration) { return q.taken(false) }

// Withdraw implements loader.ReadyQueue.
func (q *readyQueue) Withdraw() (int64, time.Duration) { return q.taken(true) }

func (q *readyQueue) taken(withdraw bool) (batches int64, waited time.Duration) {
	t := C.mfi_queue_taken(q.c, C.bool(withdraw))
	return int64(t.batches), time.Duration(t.waited_ns)
}

// Rest implements loader.ReadyQueue.
func (q *readyQueue) Rest(taken int64, limit time.Duration) bool {
	return bool(C.mfi_queue_rest(q.c, C.int64_t(taken), C.int64_t(limit)))
}

// Wake implements loader.ReadyQueue.
func (q *readyQueue) Wake() { C.mfi_queue_wake(q.c) }

// Close implements loader.ReadyQueue. It ends the ownership of the loader.
func (q *readyQueue) Close() { C.mfi_queue_drop(q.c) }
