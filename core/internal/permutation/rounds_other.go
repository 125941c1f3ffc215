//go:build !amd64

package permutation

func hasKernel() bool { return false }

func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64) {
	roundsPortable(l, r, keys, a, b)
}

// HasAVX2 reports whether this processor, and the system on it, run AVX2.
func HasAVX2() bool { return false }
