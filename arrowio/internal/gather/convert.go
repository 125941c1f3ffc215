package gather

import (
	"encoding/binary"
	"math"
)

// BitAddress names the bit-th bit at or after an address, for rows of
// booleans: Arrow packs eight to a byte, and a row may begin at any bit.
func BitAddress(address uintptr, bit int64) uintptr { return address<<3 + uintptr(bit) }

// convert does one pass of a conversion. The first of the rows is number from
// of the Run.
func (c copier) convert(conv Conversion, from int) error {
	if conv == Bits {
		c.bits()
		return nil
	}
	size, half := conv.units()
	kernel := kernels[conv]
	for i, row := range c.rows {
		dst := c.dst[i*c.width:]
		for k := range c.count {
			src := view(row+c.src+uintptr(k*c.stride), c.run*size)
			if bad := kernel(dst[k*c.run*half:(k+1)*c.run*half], src); bad >= 0 {
				return outOfRange(conv, from+i, binary.LittleEndian.Uint64(src[bad*8:]))
			}
		}
	}
	return nil
}

func outOfRange(conv Conversion, row int, bits uint64) error {
	if conv == Int64ToInt32 {
		return &RangeError{Row: row, Value: int64(bits), To: "int32"}
	}
	return &RangeError{Row: row, Value: bits, To: "uint32"}
}

// kernels convert the 8-byte elements of src to the 4-byte elements of dst and
// give the index of the first that does not fit, or -1. A complex number is
// two floating-point ones.
var kernels = [...]func(dst, src []byte) int{
	Int64ToInt32:          narrowInts,
	Uint64ToUint32:        narrowUints,
	Float64ToFloat32:      narrowFloats,
	Complex128ToComplex64: narrowFloats,
}

func narrowInts(dst, src []byte) int {
	for i := 0; len(src) >= 8 && len(dst) >= 4; i++ {
		v := int64(binary.LittleEndian.Uint64(src))
		if v != int64(int32(v)) {
			return i
		}
		binary.LittleEndian.PutUint32(dst, uint32(v))
		src, dst = src[8:], dst[4:]
	}
	return -1
}

func narrowUints(dst, src []byte) int {
	for i := 0; len(src) >= 8 && len(dst) >= 4; i++ {
		v := binary.LittleEndian.Uint64(src)
		if v > math.MaxUint32 {
			return i
		}
		binary.LittleEndian.PutUint32(dst, uint32(v))
		src, dst = src[8:], dst[4:]
	}
	return -1
}

func narrowFloats(dst, src []byte) int {
	for len(src) >= 8 && len(dst) >= 4 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(src))
		binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(v)))
		src, dst = src[8:], dst[4:]
	}
	return -1
}

// bits does one pass of Bits. Addresses and strides count bits.
func (c copier) bits() {
	for i, row := range c.rows {
		dst := c.dst[i*c.width:]
		for k := range c.count {
			expand(dst[k*c.run:(k+1)*c.run], row+c.src+uintptr(k*c.stride))
		}
	}
}

// expand writes the bits from a bit address on as bytes 0 and 1.
func expand(dst []byte, bit uintptr) {
	src := view(bit>>3, (int(bit&7)+len(dst)+7)/8)
	shift := bit & 7
	for i := range dst {
		at := uintptr(i) + shift
		dst[i] = src[at>>3] >> (at & 7) & 1
	}
}
