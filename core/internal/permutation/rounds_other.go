//go:build !amd64

package permutation

func hasKernel() bool { return false }

func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64) {
	roundsPortable(l, r, keys, a, b)
}
