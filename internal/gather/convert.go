package gather

import (
	"encoding/binary"
	"math"
)

// BitAddress returns the address of the bit-th bit after an address. Arrow packs
// eight booleans in a byte, and a row of them may begin at any bit.
func BitAddress(address uintptr, bit int64) uintptr { return address<<3 + uintptr(bit) }

// convert does one pass of a conversion. The first of its rows is row number from
// of the Run.
func (c copier) convert(conv Conversion, from int, native bool) error {
	if conv == Bits {
		c.bits()
		return nil
	}
	size, half := conv.units()
	for i, row := range c.rows {
		dst := c.dst[i*c.width:]
		for k := range c.count {
			src := view(row+c.src+uintptr(k*c.stride), c.run*size)
			if bad := conv.narrow(dst[k*c.run*half:(k+1)*c.run*half], src, native); bad >= 0 {
				return outOfRange(conv, from+i, binary.LittleEndian.Uint64(src[bad*8:]))
			}
		}
	}
	return nil
}

// narrow converts the 8-byte elements of src to the 4-byte elements of dst. It
// returns the index of the first that does not fit, or -1. A complex number counts
// as two floating-point numbers. Plain Go converts the last few elements, and the
// step of the assembly that has an element which does not fit.
func (c Conversion) narrow(dst, src []byte, native bool) int {
	done := 0
	if kernel := c.fast(); native {
		for n := len(src) / 8; n-done >= 8; {
			step := min(n-done, callBytes/8)
			did := kernel(&dst[done*4], &src[done*8], step)
			done += did
			if did < step&^7 {
				break
			}
		}
	}
	if bad := plain[c](dst[done*4:], src[done*8:]); bad >= 0 {
		return done + bad
	}
	return -1
}

func outOfRange(conv Conversion, row int, bits uint64) error {
	if conv == Int64ToInt32 {
		return &RangeError{Row: row, Value: int64(bits), To: "int32"}
	}
	return &RangeError{Row: row, Value: bits, To: "uint32"}
}

// plain holds the conversions in plain Go.
var plain = [...]func(dst, src []byte) int{
	Int64ToInt32:          narrowInts,
	Uint64ToUint32:        narrowUints,
	Float64ToFloat32:      narrowFloats,
	Complex128ToComplex64: narrowFloats,
}

func narrowInts(dst, src []byte) int {
	for i := range len(src) / 8 {
		v := int64(binary.LittleEndian.Uint64(src[i*8:]))
		if v != int64(int32(v)) {
			return i
		}
		binary.LittleEndian.PutUint32(dst[i*4:], uint32(v))
	}
	return -1
}

func narrowUints(dst, src []byte) int {
	for i := range len(src) / 8 {
		v := binary.LittleEndian.Uint64(src[i*8:])
		if v > math.MaxUint32 {
			return i
		}
		binary.LittleEndian.PutUint32(dst[i*4:], uint32(v))
	}
	return -1
}

func narrowFloats(dst, src []byte) int {
	for i := range len(src) / 8 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(src[i*8:]))
		binary.LittleEndian.PutUint32(dst[i*4:], math.Float32bits(float32(v)))
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

// expand writes the bits from a bit address on as bytes 0 and 1, eight at a time.
// The product repeats the eight bits in every byte of a word. The mask leaves bit
// k in byte k, and the sum carries it to the top of its byte.
func expand(dst []byte, bit uintptr) {
	shift := bit & 7
	src := view(bit>>3, (int(shift)+len(dst)+7)/8)
	for ; len(dst) >= 8; dst, src = dst[8:], src[1:] {
		b := src[0] >> shift
		if shift > 0 {
			b |= src[1] << (8 - shift)
		}
		each := uint64(b) * 0x0101010101010101 & 0x8040201008040201
		binary.LittleEndian.PutUint64(dst, (each+0x00406070787C7E7F)>>7&0x0101010101010101)
	}
	for i := range dst {
		at := uintptr(i) + shift
		dst[i] = src[at>>3] >> (at & 7) & 1
	}
}
