package main

/*
#include "internal.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// elementType returns the type that a caller names. The texts are for the error.
func elementType(op, what, name string, t C.mf_dtype) (dtype.Type, error) {
	out, ok := dtype.FromDLPack(uint8(t.code), uint8(t.bits))
	if !ok || t.lanes != 1 {
		return out, status.Errorf(status.Unsupported, op, "%s %q has an element type of DLPack code %d, %d bits, %d lanes, which is not one of meshfeed's",
			what, name, t.code, t.bits, t.lanes)
	}
	return out, nil
}

// dlpack returns a type as C has it.
func dlpack(t dtype.Type) C.mf_dtype {
	code, bits := t.DLPack()
	return C.mf_dtype{code: C.uint8_t(code), bits: C.uint8_t(bits), lanes: 1}
}

// scalar reads one element of a type.
func scalar(t dtype.Type, p unsafe.Pointer) (any, error) {
	if p == nil {
		return nil, status.New(status.InvalidArgument, "loader", "the value of a fill is NULL")
	}
	switch t {
	case dtype.Bool:
		return *(*uint8)(p) != 0, nil
	case dtype.Int8:
		return *(*int8)(p), nil
	case dtype.Int16:
		return *(*int16)(p), nil
	case dtype.Int32:
		return *(*int32)(p), nil
	case dtype.Int64:
		return *(*int64)(p), nil
	case dtype.Uint8:
		return *(*uint8)(p), nil
	case dtype.Uint16:
		return *(*uint16)(p), nil
	case dtype.Uint32:
		return *(*uint32)(p), nil
	case dtype.Uint64:
		return *(*uint64)(p), nil
	case dtype.Float32:
		return *(*float32)(p), nil
	case dtype.Float64:
		return *(*float64)(p), nil
	case dtype.Complex64:
		return *(*complex64)(p), nil
	case dtype.Complex128:
		return *(*complex128)(p), nil
	}
	return nil, status.Errorf(status.Unsupported, "loader", "the value of a fill is a %v", t).
		WithHint("give it as float32, which is converted to the type of the field")
}

// int64s joins lists of numbers, and returns the address of the first one.
func int64s(lists ...[]int) ([]int64, *C.int64_t) {
	out := make([]int64, 0, 1) // an address even without numbers
	for _, list := range lists {
		for _, n := range list {
			out = append(out, int64(n))
		}
	}
	return out, (*C.int64_t)(unsafe.SliceData(out))
}

// ints copies a list of numbers from C memory.
func ints(list []C.int64_t) []int {
	out := make([]int, len(list))
	for i, n := range list {
		out[i] = int(n)
	}
	return out
}
