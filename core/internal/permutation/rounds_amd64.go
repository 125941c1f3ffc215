package permutation

import "sync"

// hasKernel reports whether this processor runs roundsAVX2.
var hasKernel = sync.OnceValue(hasAVX2)

// HasAVX2 reports whether this processor, and the system on it, run AVX2.
func HasAVX2() bool { return hasKernel() }

// hasAVX2 asks the processor, and whether the system saves the wide registers.
func hasAVX2() bool

// roundsAVX2 is roundsPortable in assembly. It needs a and b of at most 2^30.
//
//go:noescape
func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64)

// splitAVX2 is splitPortable in assembly. It needs b of at least lanes.
//
//go:noescape
func splitAVX2(l, r *[lanes]uint64, b, h, t uint64)

// joinAVX2 is joinPortable in assembly. It needs halves of at most 32 bits.
//
//go:noescape
func joinAVX2(dst *[lanes]int64, l, r *[lanes]uint64, b, n uint64) (outside bool)
