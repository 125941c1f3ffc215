package strategy

import "math"

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
