package table

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Integer reads a little-endian integer of width bytes, with its sign.
func Integer(b []byte, width int) int64 {
	switch width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// allSet says whether the n bits from bit first on are all 1.
func allSet(b []byte, first, n int64) bool {
	for i := first; i < first+n; {
		if i&7 == 0 && n+first-i >= 8 {
			if b[i>>3] != math.MaxUint8 {
				return false
			}
			i += 8
			continue
		}
		if b[i>>3]>>(i&7)&1 == 0 {
			return false
		}
		i++
	}
	return true
}

// view gives the n bytes at an address outside Go's stacks. The detour tells
// vet that the conversion is meant: the memory is a mapping's, C's, or kept
// alive by the step.
func view(address uintptr, n int64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}
