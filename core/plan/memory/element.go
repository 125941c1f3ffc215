package memory

import (
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Element is the element type of an array on a device. It has all types of JAX, and
// not only the types that meshfeed reads. The zero value is invalid.
type Element uint8

// The element types that Go code names. ParseElement finds every type by its name.
const (
	Invalid Element = iota
	Bool
	Int8
	Int32
	Float16
	BFloat16
	Float32
	Float64
	unnamed // the first type without a constant
)

// elements lists the types: first types with constants, then the others. The bits are what
// an element takes in the memory of a device. XLA packs types of two and four bits, but not
// types of one bit. A PRNG key takes the 32-bit words of its implementation, such as two
// words for threefry ("fry").
var elements = [...]struct {
	name string // name of the dtype in JAX
	bits int
}{
	Bool: {"bool", 8}, Int8: {"int8", 8}, Int32: {"int32", 32},
	Float16: {"float16", 16}, BFloat16: {"bfloat16", 16}, Float32: {"float32", 32}, Float64: {"float64", 64},
	unnamed: {"int1", 8}, {"int2", 2}, {"int4", 4}, {"int16", 16}, {"int64", 64},
	{"uint1", 8}, {"uint2", 2}, {"uint4", 4}, {"uint8", 8}, {"uint16", 16}, {"uint32", 32}, {"uint64", 64},
	{"float4_e2m1fn", 4}, {"float8_e3m4", 8}, {"float8_e4m3", 8}, {"float8_e4m3b11fnuz", 8}, {"float8_e4m3fn", 8},
	{"float8_e4m3fnuz", 8}, {"float8_e5m2", 8}, {"float8_e5m2fnuz", 8}, {"float8_e8m0fnu", 8},
	{"complex64", 64}, {"complex128", 128},
	{"key<fry>", 64}, {"key<rbg>", 128}, {"key<urbg>", 128},
}

// Elements lists the valid types.
func Elements() []Element {
	list := make([]Element, 0, len(elements)-1)
	for e := Bool; int(e) < len(elements); e++ {
		list = append(list, e)
	}
	return list
}

// longNames has the types of names that other programs print.
var longNames = map[string]Element{
	"bf16": BFloat16, "fp16": Float16, "f16": Float16, "half": Float16, "fp32": Float32, "f32": Float32, "fp64": Float64, "f64": Float64,
}

// ParseElement finds a type by the name that JAX prints for its dtype.
func ParseElement(name string) (Element, error) {
	for _, e := range Elements() {
		if e.String() == name {
			return e, nil
		}
	}
	e := status.Errorf(status.InvalidArgument, "memory", "%s is not an element type of JAX", wording.Quote(name))
	if long := longNames[strings.ToLower(name)]; long != Invalid {
		return Invalid, e.WithHint("did you mean %q?", long)
	}
	var names []string
	for _, e := range Elements() {
		names = append(names, e.String())
	}
	slices.Sort(names)
	return Invalid, e.WithHint("%s", wording.Suggest(name, names))
}

// Valid reports whether e is one of Elements.
func (e Element) Valid() bool { return e > Invalid && int(e) < len(elements) }

// String returns the name of the dtype in JAX.
func (e Element) String() string {
	if !e.Valid() {
		return "invalid"
	}
	return elements[e].name
}

// Bits returns the size of one element in the memory of a device, or 0 for an
// invalid type.
func (e Element) Bits() int {
	if !e.Valid() {
		return 0
	}
	return elements[e].bits
}

// Bytes returns the size of n elements in the memory of a device. Packed elements may
// leave bits of the last byte unused. The result is at most [math.MaxInt64].
func (e Element) Bytes(n int64) int64 {
	bits := e.Bits()
	if bits >= 8 {
		return amount.Product(n, int64(bits/8))
	}
	if bits == 0 {
		return 0
	}
	perByte := int64(8 / bits)
	return n/perByte + (n%perByte+perByte-1)/perByte
}

// StoresMoments reports whether an optimizer can keep its moments in the type: types that
// have gradients, and the integers of quantized moments [Dettmers et al., arXiv 2110.02861].
func (e Element) StoresMoments() bool { return e.IsFloat() || e.IsQuantized() }

// IsQuantized reports whether the type is an integer of 4 or 8 bits.
func (e Element) IsQuantized() bool {
	return slices.Contains([]string{"int4", "uint4", "int8", "uint8"}, e.String())
}

// IsFloat reports whether arrays of the type have gradients in JAX.
func (e Element) IsFloat() bool {
	name := e.String()
	return strings.HasPrefix(name, "float") || strings.HasPrefix(name, "bfloat") || strings.HasPrefix(name, "complex")
}
