//go:build !amd64

package permutation

func hasKernel() bool { return false }

func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64) {
	roundsPortable(l, r, keys, a, b)
}

// HasAVX2 reports whether this processor, and the system on it, run AVX2.
func HasAVX2() bool { return false }

func splitAVX2(l, r *[lanes]uint64, b, h, t uint64) { splitPortable(l, r, b, h, t) }

func joinAVX2(dst *[lanes]int64, l, r *[lanes]uint64, b, n uint64) (outside bool) {
	return joinPortable(dst, l, r, b, n)
}
