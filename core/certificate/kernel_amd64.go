package certificate

import "github.com/meshfeed/meshfeed/core/internal/cpu"

// sums are those of hashes, in four lanes each: of the high halves, of the low
// halves, both modulo 2^64, and of the upper 32 bits of the low halves.
type sums [3][4]uint64

// countKernel gives the sums of the hashes of n records, a multiple of eight
// and no more than callRows, and reports whether one of them is negative; the
// sums are then worth nothing.
func countKernel(level cpu.Level, s *sums, records *int64, n int, high, low uint64) (padded bool) {
	if level >= cpu.AVX512 {
		return countAVX512(s, records, n, high, low)
	}
	return countAVX2(s, records, n, high, low)
}

//go:noescape
func countAVX2(s *sums, records *int64, n int, high, low uint64) (padded bool)

//go:noescape
func countAVX512(s *sums, records *int64, n int, high, low uint64) (padded bool)
