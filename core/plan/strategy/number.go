package strategy

import (
	"math"
	"math/bits"
)

// times returns a × b for numbers that are not negative, or the largest int64 if the
// product exceeds it.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// plus returns a + b for numbers that are not negative, or the largest int64 if the sum
// exceeds it.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// ceil returns n / by, rounded up.
func ceil(n, by int64) int64 { return (n + by - 1) / by }

// share returns n × part / whole, rounded up, for n up to 2^53.
func share(n, part, whole int64) int64 {
	return n/whole*part + ceil(n%whole*part, whole)
}

// round returns the nearest integer, half up. It limits the result to a quarter of the
// largest int64, so that a few results can be added.
func round(ns float64) int64 {
	if ns > math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return int64(math.Floor(ns + 0.5))
}
