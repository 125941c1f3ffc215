package permutation

import "github.com/meshfeed/meshfeed/core/internal/cpu"

// onceKernel is oncePortable in assembly. It needs b of at least
// lanes - 1, so that one row ends at most, and a and b of at most 2^30.
func (f *feistel) onceKernel(dst *[lanes]int64, h, t uint64) (outside bool) {
	if f.kernel >= cpu.AVX512 {
		return onceAVX512(dst, &f.keys, f.a, f.b, f.n, h, t)
	}
	var l, r [lanes]uint64
	splitAVX2(&l, &r, f.b, h, t)
	roundsAVX2(&l, &r, &f.keys, f.a, f.b)
	return joinAVX2(dst, &l, &r, f.b, f.n)
}

//go:noescape
func onceAVX512(dst *[lanes]int64, keys *[rounds]uint64, a, b, n, h, t uint64) (outside bool)

//go:noescape
func splitAVX2(l, r *[lanes]uint64, b, h, t uint64)

//go:noescape
func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64)

//go:noescape
func joinAVX2(dst *[lanes]int64, l, r *[lanes]uint64, b, n uint64) (outside bool)
