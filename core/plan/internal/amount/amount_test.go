package amount_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
)

// TestAgainstExactIntegers compares all products and sums of three amounts around the limits with
// integers of any size.
func TestAgainstExactIntegers(t *testing.T) {
	amounts := []int64{0, 1, 2, 3, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 53, 1<<62 - 1, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	for _, a := range amounts {
		for _, b := range amounts {
			for _, c := range amounts {
				x, y, z := big.NewInt(a), big.NewInt(b), big.NewInt(c)
				product, sum := new(big.Int).Mul(x, y), new(big.Int).Add(x, y)
				if got, want := amount.Product(a, b, c), capped(product.Mul(product, z)); got != want {
					t.Errorf("%d × %d × %d = %d, want %d", a, b, c, got, want)
				}
				if got, want := amount.Sum(a, b, c), capped(sum.Add(sum, z)); got != want {
					t.Errorf("%d + %d + %d = %d, want %d", a, b, c, got, want)
				}
			}
		}
	}
	if p, s := amount.Product[int](), amount.Sum(); p != 1 || s != 0 {
		t.Errorf("without amounts: %d and %d", p, s)
	}
	if p := amount.Product([]int{2, 3, 4}...); p != 24 {
		t.Errorf("a shape has %d elements, want 24", p)
	}
}

func capped(exact *big.Int) int64 {
	if exact.IsInt64() {
		return exact.Int64()
	}
	return math.MaxInt64
}
