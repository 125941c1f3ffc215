package table

import "math"

// allSet reports whether the n bits from bit first on are all 1.
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

// setRuns calls do for every run of 1s among the n bits from bit first on. The
// runs count from there.
func setRuns(b []byte, first, n int64, do func(from, count int64)) {
	for k := int64(0); k < n; k++ {
		from := k
		for k < n && b[(first+k)>>3]>>((first+k)&7)&1 == 1 {
			k++
		}
		if k > from {
			do(from, k-from)
		}
	}
}
