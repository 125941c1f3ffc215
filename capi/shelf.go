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

// shelf is a loader.Shelf in C. Nil is none: callers then always enter Go.
type shelf struct{ c *C.mfi_shelf }

// newShelf makes one, which a loader, an object and the call that makes the
// object's handle own.
func newShelf() *shelf {
	if injecting {
		return nil
	}
	c := C.mfi_shelf_new()
	if c == nil {
		return nil
	}
	return &shelf{c}
}

// place lets callers find the shelf under a handle, and ends the share of the
// call that made it.
func (s *shelf) place(h C.uint64_t) {
	if s != nil {
		C.mfi_shelf_place(h, s.c)
		C.mfi_shelf_drop(s.c)
	}
}

// under gives the shelf to a loader, if that was made.
func (s *shelf) under(l *loader.Loader, err error) (*loader.Loader, error) {
	if s != nil && err == nil {
		l.Shelve(s)
	}
	return l, err
}

// leave ends the object's share, and that of a loader that was never made.
func (s *shelf) leave(made bool) {
	if s == nil {
		return
	}
	if !made {
		s.Close()
	}
	C.mfi_shelf_drop(s.c)
}

// Offer implements loader.Shelf.
func (s *shelf) Offer(b *batch.Batch, after loader.State) bool {
	m := b.Memory().(*memory)
	m.describe(b.Place(), after)
	return bool(C.mfi_shelf_offer(s.c, m.slot))
}

// Expect implements loader.Shelf.
func (s *shelf) Expect(soon bool) { C.mfi_shelf_expect(s.c, C.bool(soon)) }

// Recall implements loader.Shelf.
func (s *shelf) Recall() (taken int, waited time.Duration) {
	r := C.mfi_shelf_recall(s.c)
	return int(r.taken), time.Duration(r.waited_ns)
}

// Rest implements loader.Shelf.
func (s *shelf) Rest(limit time.Duration) (woken bool) {
	return bool(C.mfi_shelf_rest(s.c, C.int64_t(limit)))
}

// Wake implements loader.Shelf.
func (s *shelf) Wake() { C.mfi_shelf_wake(s.c) }

// Close implements loader.Shelf: it ends the loader's share.
func (s *shelf) Close() { C.mfi_shelf_drop(s.c) }
