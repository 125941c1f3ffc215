package certificate

import "github.com/meshfeed/meshfeed/core/internal/permutation"

// hasKernel reports whether this processor runs countAVX2.
func hasKernel() bool { return permutation.HasAVX2() }

// sums are those of hashes, in four lanes each: of the high halves, of the low
// halves, both modulo 2^64, and of the upper 32 bits of the low halves.
type sums [3][4]uint64

// countAVX2 adds the hashes of n records, a multiple of eight, and reports
// whether one of them is negative; the sums are then worth nothing.
//
//go:noescape
func countAVX2(s *sums, records *int64, n int, high, low uint64) (padded bool)
