package encoding

import "fmt"

// Indices sets dst to the indices of a page with dictionary encoding: the number of
// bits of an index in one byte, and [Runs]. Every index is checked to be below size,
// the number of values of the dictionary.
func Indices(dst []uint32, src []byte, size int) error {
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
		part := dst[:run.Count]
		if largest := fill(part, run, runs.width); uint64(largest) >= uint64(size) {
			return fmt.Errorf("index %d into a dictionary of %d values", largest, size)
		}
		dst = dst[run.Count:]
	}
	return nil
}

// fill sets dst to the numbers of a run, and returns the largest.
func fill(dst []uint32, run Run, width int) (largest uint32) {
	if run.Packed == nil {
		for i := range dst {
			dst[i] = run.Value
		}
		return run.Value
	}
	Unpack(dst, run.Packed, width)
	for ; len(dst) >= 4; dst = dst[4:] { // four at a time, which do not wait for each other
		largest = max(largest, max(max(dst[0], dst[1]), max(dst[2], dst[3])))
	}
	for _, v := range dst {
		largest = max(largest, v)
	}
	return largest
}
