package main

/*
#include "internal.h"

static void mfi_call(void (*release)(void*), void* context) { release(context); }
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/cstream"
	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/status"
)

//export mfgo_dataset_open_arrays
func mfgo_dataset_open_arrays(list *C.mfi_array, n C.int32_t, release C.mfi_release, context unsafe.Pointer, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		arrays, err := readArrays(list, n)
		if err != nil {
			return err
		}
		src, err := cstream.FromArrays(arrays, func() {
			if release != nil {
				C.mfi_call(release, context)
			}
		})
		if err != nil {
			return err
		}
		put(newDataset(future.Of(src), true), out)
		return nil
	})
}

// readArrays converts the caller's descriptions. If the caller was compiled with a
// newer header, its struct may be longer than the library's.
func readArrays(list *C.mfi_array, n C.int32_t) ([]cstream.Array, error) {
	if n <= 0 || n > cstream.MaxArrays { // checked before memory is allocated for n arrays
		return nil, status.Errorf(status.InvalidArgument, "arrays", "a dataset has from 1 to %d arrays, but there are %d", cstream.MaxArrays, n)
	}
	size := uintptr(list.struct_size)
	if size < unsafe.Sizeof(*list) {
		return nil, status.Errorf(status.Incompatible, "arrays", "struct_size of an mf_array is %d, but must be at least %d", size, unsafe.Sizeof(*list)).
			WithHint("begin every array with MF_ARRAY_INIT, or set struct_size to sizeof(mf_array)")
	}
	out := make([]cstream.Array, n)
	for i := range out {
		a := (*C.mfi_array)(unsafe.Add(unsafe.Pointer(list), uintptr(i)*size))
		if uintptr(a.struct_size) != size {
			return nil, status.Errorf(status.InvalidArgument, "arrays", "struct_size of array %d is %d, but of the first one %d", i, a.struct_size, size)
		}
		var err error
		if out[i], err = readArray(a); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readArray(a *C.mfi_array) (cstream.Array, error) {
	const maxRank = C.MFI_MAX_RANK
	out := cstream.Array{Name: C.GoString(a.name), Data: a.data, Logical: C.GoString(a.logical)}
	if a.ndim < 0 || a.ndim > maxRank || a.ndim > 0 && a.shape == nil {
		return out, status.Errorf(status.InvalidArgument, "arrays", "array %q has %d dimensions and the shape at %p: expected 1 to %d and a shape", out.Name, a.ndim, a.shape, maxRank)
	}
	var err error
	if out.Type, err = elementType("arrays", "array", out.Name, a.dtype); err != nil {
		return out, err
	}
	out.Shape = ints(unsafe.Slice(a.shape, int(a.ndim)))
	if a.strides != nil {
		out.Strides = ints(unsafe.Slice(a.strides, int(a.ndim)))
	}
	return out, nil
}
