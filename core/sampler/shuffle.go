package sampler

import "github.com/meshfeed/meshfeed/core/internal/permutation"

var shuffleKind = kind{name: Shuffle, form: Shuffle, make: func(_ name, seed, records int64, _ []int64) (Order, error) {
	return shuffle{seed, records}, nil
}}

// shuffle is a new permutation for every epoch.
type shuffle struct{ seed, records int64 }

func (s shuffle) Name() string { return Shuffle }
func (s shuffle) Len() int64   { return s.records }

func (s shuffle) Epoch(epoch int64) Epoch {
	return permutation.New(s.records, useShuffle, uint64(s.seed), uint64(epoch))
}
