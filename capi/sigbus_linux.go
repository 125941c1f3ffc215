package main

/*
#include "internal.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio"
)

// signals tells the handler of sigbus_linux.c of mapped files.
func signals() arrowio.FaultHandler { return handler{} }

type handler struct{}

// Watch implements arrowio.FaultHandler.
func (handler) Watch(mapping []byte) (faulted *uint32, end func()) {
	w := C.mfi_watch_add(unsafe.Pointer(unsafe.SliceData(mapping)), C.size_t(len(mapping)))
	if w == nil {
		return new(uint32), func() {} // no memory: Go's own handler remains
	}
	return (*uint32)(unsafe.Pointer(C.mfi_watch_mark(w))), func() { C.mfi_watch_remove(w) }
}

// Arm implements arrowio.FaultHandler.
func (handler) Arm() { C.mfi_watch_arm() }
