package permutation_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
	"github.com/meshfeed/meshfeed/tests/random"
)

// Images agrees with At for any number of permutations, for tables and networks,
// and for elements that walk.
func TestImages(t *testing.T) {
	r := random.New(t)
	for _, n := range []int64{1, permutation.TableSize, permutation.TableSize + 1, 5000, 1 << 33} {
		for count := range 40 {
			of, at, dst := make([]permutation.Permutation, count), make([]int64, count), make([]int64, count)
			for i := range of {
				of[i], at[i] = permutation.New(n, r.Uint64N(9)), r.Int64N(n)
			}
			permutation.Images(dst, of, at)
			for i := range of {
				if want := of[i].At(at[i]); dst[i] != want {
					t.Fatalf("size %d, %d of %d: got %d, At gives %d", n, i, count, dst[i], want)
				}
			}
		}
	}
}

func TestImagesOutOfRange(t *testing.T) {
	for _, n := range []int64{10, 10_000} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("position %d of %d was accepted", n, n)
				}
			}()
			permutation.Images(make([]int64, 1), []permutation.Permutation{permutation.New(n)}, []int64{n})
		}()
	}
}
