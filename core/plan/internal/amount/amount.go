// Package amount adds and multiplies amounts: bytes, elements, operations and nanoseconds. A
// document can name sizes with a product beyond int64, so a result that is too large becomes
// [math.MaxInt64], which every check of a limit refuses. No amount may be negative.
package amount

import (
	"math"
	"math/bits"
)

// Product returns the product of the factors, such as the number of elements of a shape. It is 0 if
// a factor is 0.
func Product[T int | int64](factors ...T) int64 {
	product := uint64(1)
	for _, f := range factors {
		high, low := bits.Mul64(product, uint64(f))
		if high != 0 {
			low = math.MaxInt64
		}
		product = min(low, math.MaxInt64)
	}
	return int64(product)
}

// Sum returns the sum of the terms.
func Sum(terms ...int64) int64 {
	sum := int64(0)
	for _, t := range terms {
		if t > math.MaxInt64-sum {
			return math.MaxInt64
		}
		sum += t
	}
	return sum
}
