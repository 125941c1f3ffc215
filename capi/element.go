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

// elementType converts a DLPack type that a C caller passed. The strings op, what
// and name are for the error text.
func elementType(op, what, name string, t C.mf_dtype) (dtype.Type, error) {
	out, ok := dtype.FromDLPack(uint8(t.code), uint8(t.bits))
	if !ok || t.lanes != 1 {
		return out, status.Errorf(status.Unsupported, op, "%s %q has an element type of DLPack code %d, %d bits, %d lanes, which is not one of meshfeed's",
			what, name, t.code, t.bits, t.lanes)
	}
	return out, nil
}

// dlpack converts a type to DLPack's form.
func dlpack(t dtype.Type) C.mf_dtype {
	code, bits := t.DLPack()
	return C.mf_dtype{code: C.uint8_t(code), bits: C.uint8_t(bits), lanes: 1}
}

// scalar reads one element of a type from C memory.
func scalar(t dtype.Type, p unsafe.Pointer) (any, error) {
	if p == nil {
		return nil, status.New(status.InvalidArgument, "loader", "the value of a fill is NULL")
	}
	if t == dtype.Bool {
		return *(*uint8)(p) != 0, nil
	}
	if read := scalars[t]; read != nil {
		return read(p), nil
	}
	return nil, status.Errorf(status.Unsupported, "loader", "the value of a fill is a %v", t).
		WithHint("give it as float32, which is converted to the type of the field")
}

// scalars has a function that reads one number, for each type that Go has.
var scalars = map[dtype.Type]func(unsafe.Pointer) any{
	dtype.Int8: read[int8], dtype.Int16: read[int16], dtype.Int32: read[int32], dtype.Int64: read[int64],
	dtype.Uint8: read[uint8], dtype.Uint16: read[uint16], dtype.Uint32: read[uint32], dtype.Uint64: read[uint64],
	dtype.Float32: read[float32], dtype.Float64: read[float64],
	dtype.Complex64: read[complex64], dtype.Complex128: read[complex128],
}

func read[T any](p unsafe.Pointer) any { return *(*T)(p) }

// int64s joins lists of numbers, and returns the address of the first one.
func int64s(lists ...[]int) ([]int64, *C.int64_t) {
	out := make([]int64, 0, 1) // with capacity 1 the address is not nil even if the lists are empty
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
