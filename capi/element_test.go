package main

import (
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// TestScalar reads the number 3, or true, of every element type.
func TestScalar(t *testing.T) {
	for _, c := range []struct {
		element dtype.Type
		value   any
		at      unsafe.Pointer
	}{
		{dtype.Bool, true, unsafe.Pointer(&[]uint8{3}[0])},
		{dtype.Int8, int8(3), unsafe.Pointer(&[]int8{3}[0])},
		{dtype.Int16, int16(3), unsafe.Pointer(&[]int16{3}[0])},
		{dtype.Int32, int32(3), unsafe.Pointer(&[]int32{3}[0])},
		{dtype.Int64, int64(3), unsafe.Pointer(&[]int64{3}[0])},
		{dtype.Uint8, uint8(3), unsafe.Pointer(&[]uint8{3}[0])},
		{dtype.Uint16, uint16(3), unsafe.Pointer(&[]uint16{3}[0])},
		{dtype.Uint32, uint32(3), unsafe.Pointer(&[]uint32{3}[0])},
		{dtype.Uint64, uint64(3), unsafe.Pointer(&[]uint64{3}[0])},
		{dtype.Float32, float32(3), unsafe.Pointer(&[]float32{3}[0])},
		{dtype.Float64, float64(3), unsafe.Pointer(&[]float64{3}[0])},
		{dtype.Complex64, complex64(3), unsafe.Pointer(&[]complex64{3}[0])},
		{dtype.Complex128, complex128(3), unsafe.Pointer(&[]complex128{3}[0])},
	} {
		if got, err := scalar(c.element, c.at); got != c.value || err != nil {
			t.Errorf("%v: got %T %v, %v", c.element, got, got, err)
		}
	}
	for element, want := range map[dtype.Type]string{
		dtype.BFloat16: "loader: the value of a fill is a bfloat16; give it as float32, which is converted to the type of the field",
		dtype.Float16:  "loader: the value of a fill is a float16; give it as float32, which is converted to the type of the field",
	} {
		if _, err := scalar(element, unsafe.Pointer(&[]uint16{3}[0])); err == nil || err.Error() != want {
			t.Errorf("%v: got %v", element, err)
		}
	}
	if _, err := scalar(dtype.Int32, nil); err == nil || err.Error() != "loader: the value of a fill is NULL" {
		t.Errorf("NULL: got %v", err)
	}
}
