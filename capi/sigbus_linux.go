package main

/*
#include "internal.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio"
)

// faultHandler is the signal handler of sigbus_linux.c.
func faultHandler() arrowio.FaultHandler { return sigbus{} }

type sigbus struct{}

// Watch implements arrowio.FaultHandler.
func (sigbus) Watch(mapping []byte) (faulted *uint32, end func()) {
	w := C.mfi_watch_add(unsafe.Pointer(unsafe.SliceData(mapping)), C.size_t(len(mapping)))
	if w == nil {
		return new(uint32), func() {} // out of memory: Go's own handler remains
	}
	return (*uint32)(unsafe.Pointer(C.mfi_watch_mark(w))), func() { C.mfi_watch_remove(w) }
}

// Arm implements arrowio.FaultHandler.
func (sigbus) Arm() { C.mfi_watch_arm() }
