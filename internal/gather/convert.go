package gather

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// BitAddress returns the address of the bit-th bit after an address. Arrow packs
// eight booleans in a byte, and a row of them may begin at any bit.
func BitAddress(address uintptr, bit int64) uintptr { return address<<3 + uintptr(bit) }

// convert does one pass of a conversion. The first of its rows is row number first
// of the Run.
func (c copier) convert(conv Conversion, first int) error {
	switch conv {
	case Int64ToInt32:
		return narrow[int64, int32](c, first)
	case Uint64ToUint32:
		return narrow[uint64, uint32](c, first)
	case Complex128ToComplex64: // two numbers each
		c.run *= 2
	case Bits:
		c.bits()
		return nil
	}
	c.round()
	return nil
}

// narrow converts integers and fails at the first that does not fit.
func narrow[Wide int64 | uint64, Narrow int32 | uint32](c copier, first int) error {
	for i, row := range c.rows {
		dst := elements[Narrow](c, i)
		for k := range c.count {
			src := view[Wide](row+c.src+uintptr(k*c.stride), c.run)
			to := dst[k*c.run:][:len(src)]
			for j, v := range src {
				n := Narrow(v)
				if Wide(n) != v {
					return &RangeError{Row: first + i, Value: v, To: fmt.Sprintf("%T", n)}
				}
				to[j] = n
			}
		}
	}
	return nil
}

// round converts floating-point numbers.
func (c copier) round() {
	for i, row := range c.rows {
		dst := elements[float32](c, i)
		for k := range c.count {
			src := view[float64](row+c.src+uintptr(k*c.stride), c.run)
			to := dst[k*c.run:][:len(src)]
			for j, v := range src {
				to[j] = float32(v)
			}
		}
	}
}

// elements returns the destination of row i. It need not be aligned.
func elements[T any](c copier, i int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&c.dst[i*c.width])), c.count*c.run)
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
	src := view[byte](bit>>3, (int(shift)+len(dst)+7)/8)
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
