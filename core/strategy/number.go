package strategy

import (
	"math"
	"math/bits"
)

// times multiplies numbers that are not negative. A product above the largest int64
// is that number.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// plus adds numbers that are not negative, like times.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// round rounds a time to whole nanoseconds, half up.
func round(ns float64) int64 {
	if ns > math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return int64(math.Floor(ns + 0.5))
}
