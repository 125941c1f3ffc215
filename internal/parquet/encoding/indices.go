package encoding

import (
	"encoding/binary"
	"fmt"
)

// Indices sets dst to the indices of a page with dictionary encoding: the number of
// bits of an index in one byte, and [Runs]. [GatherFixed] and [Bytes.Gather] check that the
// dictionary has them.
func Indices(dst []uint32, src []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if len(src) == 0 {
		return errShort
	}
	runs, err := NewRuns(src[1:], int(src[0]), len(dst))
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		run, err := runs.Next()
		if err != nil {
			return err
		}
		run.unpack(dst[:run.Count], runs.width)
		dst = dst[run.Count:]
	}
	return nil
}

// unpack sets dst to the numbers of a run.
func (r *Run) unpack(dst []uint32, width int) {
	if r.Packed != nil {
		Unpack(dst, r.Packed, width)
		return
	}
	for i := range dst {
		dst[i] = r.Value
	}
}

// GatherFixed sets dst to the values with these indices. Dictionary has size values of a
// fixed width, and every index is checked to be below size.
func GatherFixed(dst, dictionary []byte, size int, indices []uint32) error {
	width := len(dictionary) / max(size, 1)
	switch width {
	case 4:
		for i, k := range indices {
			at := 4 * uint64(k)
			if at+4 > uint64(len(dictionary)) {
				return outside(k, size)
			}
			binary.LittleEndian.PutUint32(dst[4*i:4*i+4], binary.LittleEndian.Uint32(dictionary[at:at+4]))
		}
	case 8:
		for i, k := range indices {
			at := 8 * uint64(k)
			if at+8 > uint64(len(dictionary)) {
				return outside(k, size)
			}
			binary.LittleEndian.PutUint64(dst[8*i:8*i+8], binary.LittleEndian.Uint64(dictionary[at:at+8]))
		}
	default:
		for i, k := range indices {
			if uint64(k) >= uint64(size) {
				return outside(k, size)
			}
			copy(dst[width*i:width*(i+1)], dictionary[width*int(k):])
		}
	}
	return nil
}

func outside(index uint32, size int) error {
	return fmt.Errorf("index %d into a dictionary of %d values", index, size)
}
