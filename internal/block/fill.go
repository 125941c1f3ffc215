package block

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// encode returns the bytes of one element that holds a fill value, which replaces
// the nulls of field name.
func encode(name string, to dtype.Type, given any) ([]byte, error) {
	fill := widest(given)
	if fill == nil {
		return nil, fail("field %q cannot have a %T in the place of nulls", name, given).
			WithHint("give a boolean or a number")
	}
	b, ok := element(to, fill)
	if !ok {
		return nil, fail("%v cannot replace the nulls of field %q: %v cannot hold it", fill, name, to)
	}
	return b, nil
}

// widest converts a boolean or a number of any Go type to the widest type of its
// kind, for example int to int64. It returns nil for anything else.
func widest(fill any) any {
	switch v := reflect.ValueOf(fill); {
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.CanFloat():
		return v.Float()
	case v.CanComplex():
		return v.Complex()
	}
	return nil
}

// element encodes a value as an element of a type. The second result is false if
// the type cannot hold the value. Integers must be exact. Floating-point numbers may
// be rounded, but not to infinity.
func element(to dtype.Type, fill any) ([]byte, bool) {
	switch v := fill.(type) {
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		return little(n, 1), to == dtype.Bool
	case int64:
		if to.IsInteger() {
			return integer(to, v)
		}
		return floating(to, float64(v))
	case uint64:
		if v <= math.MaxInt64 {
			return element(to, int64(v))
		}
		if to.IsInteger() {
			return little(v, 8), to == dtype.Uint64
		}
		return floating(to, float64(v))
	case float64:
		if to.IsInteger() && v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return integer(to, int64(v))
		}
		return floating(to, v)
	case complex128:
		return complexOf(to, v)
	}
	return nil, false
}

func little(n uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, n)[:size] }

func integer(to dtype.Type, v int64) ([]byte, bool) {
	bits := 8 * to.Size()
	unsigned := to >= dtype.Uint8
	fits := unsigned && v >= 0 && (bits == 64 || v < 1<<bits) ||
		!unsigned && (bits == 64 || v >= -1<<(bits-1) && v < 1<<(bits-1))
	return little(uint64(v), to.Size()), fits
}

func floating(to dtype.Type, v float64) ([]byte, bool) {
	overflow := func(rounded float64) bool { return math.IsInf(rounded, 0) && !math.IsInf(v, 0) }
	f := float32(v)
	switch to {
	case dtype.Float64:
		return little(math.Float64bits(v), 8), true
	case dtype.Float32:
		return little(uint64(math.Float32bits(f)), 4), !overflow(float64(f))
	case dtype.BFloat16:
		h := toBFloat16(f)
		return little(uint64(h), 2), !overflow(float64(math.Float32frombits(uint32(h) << 16)))
	case dtype.Float16:
		h := toFloat16(v)
		return little(uint64(h), 2), h&0x7fff != 0x7c00 || math.IsInf(v, 0)
	case dtype.Complex64, dtype.Complex128:
		return complexOf(to, complex(v, 0))
	}
	return nil, false
}

func complexOf(to dtype.Type, v complex128) ([]byte, bool) {
	part := map[dtype.Type]dtype.Type{dtype.Complex64: dtype.Float32, dtype.Complex128: dtype.Float64}[to]
	if part == dtype.Invalid {
		return nil, false
	}
	re, ok1 := floating(part, real(v))
	im, ok2 := floating(part, imag(v))
	return append(re, im...), ok1 && ok2
}

// toBFloat16 rounds to the nearest bfloat16, ties to even.
func toBFloat16(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return uint16(bits>>16) | 0x40 // keep it a NaN
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// toFloat16 rounds to the nearest IEEE 754 binary16, ties to even. It divides the
// value by the spacing of the binary16 numbers around it, and calls RoundToEven.
func toFloat16(v float64) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign = 0x8000
	}
	v = math.Abs(v)
	switch {
	case v != v:
		return sign | 0x7e00
	case v == 0:
		return sign
	case v > 65536:
		return sign | 0x7c00
	}
	_, exponent := math.Frexp(v)                      // v is in [2^(exponent-1), 2^exponent)
	exponent = max(exponent, -13)                     // smaller numbers are subnormal, with a spacing of 2^-24
	n := math.RoundToEven(math.Ldexp(v, 11-exponent)) // 11 significant bits
	if exponent > 16 || exponent == 16 && n == 2048 { // 65520 and more
		return sign | 0x7c00
	}
	return sign | uint16((exponent+13)<<10+int(n)) // the leading bit of n adds 1 to the exponent
}

// Element encodes a boolean or a number of any Go type as one element of a type. The
// second result is false if the type cannot hold the value.
func Element(to dtype.Type, value any) ([]byte, bool) { return element(to, widest(value)) }
