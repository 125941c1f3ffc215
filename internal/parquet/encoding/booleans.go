package encoding

import "encoding/binary"

// Booleans are written as bytes 0 and 1.

// PlainBooleans sets dst to the booleans of a page that packs them into bits.
func PlainBooleans(dst, src []byte) error {
	if len(src) < (len(dst)+7)/8 {
		return errShort
	}
	const each = 0x0101010101010101 // byte
	for ; len(dst) >= 8; dst, src = dst[8:], src[1:] {
		bits := uint64(src[0]) * each & 0x8040201008040201           // bit k in byte k
		binary.LittleEndian.PutUint64(dst, (bits+0x7f*each)>>7&each) // 1 in bytes that are not 0
	}
	for i := range dst {
		dst[i] = src[0] >> i & 1
	}
	return nil
}

// RunBooleans sets dst to the booleans of a page in the encoding RLE: the size of the
// runs in four bytes, and [Runs] of one bit.
func RunBooleans(dst, src []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) > uint64(len(src)-4) {
		return errShort
	}
	runs, err := NewRuns(src[4:4+binary.LittleEndian.Uint32(src)], 1, len(dst))
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		run, err := runs.Next()
		if err != nil {
			return err
		}
		part := dst[:run.Count]
		if run.Packed == nil {
			for i := range part {
				part[i] = byte(run.Value)
			}
		} else if err := PlainBooleans(part, run.Packed); err != nil {
			return err
		}
		dst = dst[run.Count:]
	}
	return nil
}
