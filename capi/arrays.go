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
	"github.com/meshfeed/meshfeed/core/dtype"
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

// readArrays reads the caller's descriptions, whose struct may be longer than
// the one this library knows.
func readArrays(list *C.mfi_array, n C.int32_t) ([]cstream.Array, error) {
	if n <= 0 || n > cstream.MaxArrays { // before any memory is taken for so many
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
	const maxRank = 32
	out := cstream.Array{Name: C.GoString(a.name), Data: a.data}
	if a.ndim < 0 || a.ndim > maxRank || a.ndim > 0 && a.shape == nil {
		return out, status.Errorf(status.InvalidArgument, "arrays", "array %q has %d dimensions and the shape at %p: expected 1 to %d and a shape", out.Name, a.ndim, a.shape, maxRank)
	}
	t, ok := dtype.FromDLPack(uint8(a.dtype.code), uint8(a.dtype.bits))
	if !ok || a.dtype.lanes != 1 {
		return out, status.Errorf(status.Unsupported, "arrays", "array %q has an element type of DLPack code %d, %d bits, %d lanes, which is not one of meshfeed's",
			out.Name, a.dtype.code, a.dtype.bits, a.dtype.lanes)
	}
	out.Type, out.Shape = t, ints(a.shape, a.ndim)
	if a.strides != nil {
		out.Strides = ints(a.strides, a.ndim)
	}
	return out, nil
}

func ints(p *C.int64_t, n C.int32_t) []int {
	out := make([]int, n)
	for i, v := range unsafe.Slice(p, int(n)) {
		out[i] = int(v)
	}
	return out
}
