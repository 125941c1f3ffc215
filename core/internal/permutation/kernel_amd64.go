package permutation

// onceKernel is oncePortable in AVX2. It needs b of at least lanes-1, so that at
// most one row of the rectangle ends within the lanes, and a and b of at most
// 2^30.
func (f *feistel) onceKernel(dst *[lanes]int64, h, t uint64) (outside bool) {
	var l, r [lanes]uint64
	splitAVX2(&l, &r, f.b, h, t)
	roundsAVX2(&l, &r, &f.keys, f.a, f.b)
	return joinAVX2(dst, &l, &r, f.b, f.n)
}

//go:noescape
func splitAVX2(l, r *[lanes]uint64, b, h, t uint64)

//go:noescape
func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64)

//go:noescape
func joinAVX2(dst *[lanes]int64, l, r *[lanes]uint64, b, n uint64) (outside bool)
