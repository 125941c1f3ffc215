package sampler

import "github.com/meshfeed/meshfeed/core/internal/permutation"

// Split returns the permutation that view.Split cuts into parts: of the records of a
// dataset, or of groups of them. It is frozen as an order is, and unrelated to the orders
// of the same seed. The error is InvalidArgument for a seed or a number that [New]
// refuses.
func Split(seed, n int64) (Epoch, error) {
	if _, _, err := lookUp(Shuffle, seed, n); err != nil {
		return nil, err
	}
	return permutation.New(n, useSplit, uint64(seed)), nil
}
