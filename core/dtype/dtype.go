// Package dtype defines the element types of arrays, with their names in NumPy and
// JAX and their codes in DLPack. An element is in little-endian order. A boolean
// takes one byte.
package dtype

import (
	"reflect"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// Type is the element type of a field or an array. The zero value is invalid.
type Type uint8

// The types, in the order of their size within each kind.
const (
	Invalid Type = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	Complex64
	Complex128
	numTypes
)

// The type codes of DLPack (DLDataTypeCode) that Type uses.
const (
	DLInt     = 0
	DLUint    = 1
	DLFloat   = 2
	DLBFloat  = 4
	DLComplex = 5
	DLBool    = 6
)

type facts struct {
	name   string // in NumPy, JAX and documents
	size   int    // bytes
	dlpack uint8
	narrow Type // the type that JAX uses instead if jax_enable_x64 is off; Invalid for none
}

var table = [numTypes]facts{
	Bool:       {"bool", 1, DLBool, Invalid},
	Int8:       {"int8", 1, DLInt, Invalid},
	Int16:      {"int16", 2, DLInt, Invalid},
	Int32:      {"int32", 4, DLInt, Invalid},
	Int64:      {"int64", 8, DLInt, Int32},
	Uint8:      {"uint8", 1, DLUint, Invalid},
	Uint16:     {"uint16", 2, DLUint, Invalid},
	Uint32:     {"uint32", 4, DLUint, Invalid},
	Uint64:     {"uint64", 8, DLUint, Uint32},
	Float16:    {"float16", 2, DLFloat, Invalid},
	BFloat16:   {"bfloat16", 2, DLBFloat, Invalid},
	Float32:    {"float32", 4, DLFloat, Invalid},
	Float64:    {"float64", 8, DLFloat, Float32},
	Complex64:  {"complex64", 8, DLComplex, Invalid},
	Complex128: {"complex128", 16, DLComplex, Complex64},
}

// Element is a Go type that can be the element type of an array.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128
}

// Of returns the type of the elements that T holds.
func Of[T Element]() Type {
	t, _ := Parse(reflect.TypeFor[T]().String()) // the types have the names that they have in Go
	return t
}

// All lists the valid types.
func All() []Type {
	list := make([]Type, 0, numTypes-1)
	for t := Bool; t < numTypes; t++ {
		list = append(list, t)
	}
	return list
}

// Valid reports whether t is one of the types of All.
func (t Type) Valid() bool { return t > Invalid && t < numTypes }

// Size returns the bytes of one element, or 0 for an invalid type.
func (t Type) Size() int {
	if !t.Valid() {
		return 0
	}
	return table[t].size
}

// String returns the name, such as "float32".
func (t Type) String() string {
	if !t.Valid() {
		return "invalid"
	}
	return table[t].name
}

// Parse finds a type by its name.
func Parse(name string) (Type, error) {
	for t := Bool; t < numTypes; t++ {
		if table[t].name == name {
			return t, nil
		}
	}
	return Invalid, status.Errorf(status.InvalidArgument, "dtype", "%q is not an element type", name).
		WithHint("use one of %s", list())
}

func list() string {
	names := make([]string, 0, numTypes-1)
	for _, t := range All() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// DLPack returns the type code of DLPack and the bits of one element. DLPack's number
// of lanes is always 1.
func (t Type) DLPack() (code, bits uint8) {
	if !t.Valid() {
		return 0, 0
	}
	return table[t].dlpack, uint8(8 * table[t].size)
}

// FromDLPack finds a type by its DLPack code and the bits of one element.
func FromDLPack(code, bits uint8) (Type, bool) {
	for t := Bool; t < numTypes; t++ {
		if c, b := t.DLPack(); c == code && b == bits {
			return t, true
		}
	}
	return Invalid, false
}

// Narrow returns the type that JAX uses for t if jax_enable_x64 is off: 64-bit types
// become 32-bit types, complex128 becomes complex64, and the others stay.
func (t Type) Narrow() Type {
	if t.Valid() && table[t].narrow != Invalid {
		return table[t].narrow
	}
	return t
}

// IsInteger reports whether t is a signed or unsigned integer.
func (t Type) IsInteger() bool { return t >= Int8 && t <= Uint64 }

// MarshalText returns the name.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses a name.
func (t *Type) UnmarshalText(text []byte) error {
	p, err := Parse(string(text))
	*t = p
	return err
}
