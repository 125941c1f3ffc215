package permutation

import "sync"

// hasKernel reports whether this processor runs roundsAVX2.
var hasKernel = sync.OnceValue(hasAVX2)

// hasAVX2 asks the processor, and whether the system saves the wide registers.
func hasAVX2() bool

// roundsAVX2 is roundsPortable in assembly. It needs a and b of at most 2^30.
//
//go:noescape
func roundsAVX2(l, r *[lanes]uint64, keys *[rounds]uint64, a, b uint64)
