package encoding

import "encoding/binary"

// Booleans are written as bytes 0 and 1.

// PlainBooleans sets dst to the booleans of a page that packs them into bits.
func PlainBooleans(dst, src []byte) error {
	if len(src) < (len(dst)+7)/8 {
		return errShort
	}
	for i := range dst {
		dst[i] = src[i>>3] >> (i & 7) & 1
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
		for i := range part {
			if part[i] = byte(run.Value); run.Packed != nil {
				part[i] = run.Packed[i>>3] >> (i & 7) & 1
			}
		}
		dst = dst[run.Count:]
	}
	return nil
}
