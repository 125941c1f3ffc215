package memory

import "math"

// product returns the number of elements of a shape, or math.MaxInt64 if there are more.
func product(shape []int) int64 {
	n := int64(1)
	for _, size := range shape {
		if size == 0 {
			return 0
		}
		n = times(n, int64(size))
	}
	return n
}

// times multiplies numbers that are not negative. It returns math.MaxInt64 if the product
// is larger.
func times(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// plus adds numbers that are not negative. It returns math.MaxInt64 if the sum is larger.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
