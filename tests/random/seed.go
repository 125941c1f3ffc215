// Package random draws what tests leave to chance: numbers, meshes, specs,
// fields, damage. All of it follows from a seed, which the log of a failed test
// names and the flag -seed takes back:
//
//	go test ./core/loader -run TestLoadings -seed=17
//
// [New] is for a test that draws once, [Rounds] for one that plays many random
// worlds, each with a seed of its own.
package random

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 takes a new one")

// New gives a generator, and logs the flags that run the test again with the
// same numbers. Of parts that run at the same time each takes one of its own.
func New(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("again: -run '%s' -seed=%d", t.Name(), s)
	return From(s)
}

// From gives the generator of a seed.
func From(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Rounds plays as many rounds as quick says, or as deep says with
// MESHFEED_DEEP=1, or the one round of -seed, and ends with the first that fails.
func Rounds(t *testing.T, quick, deep int, play func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	rounds, first := quick, rand.Uint64()
	if os.Getenv("MESHFEED_DEEP") != "" {
		rounds = deep
	}
	if *seed != 0 {
		rounds, first = 1, *seed
	}
	for i := range uint64(rounds) {
		s := first + i
		if !t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) { play(t, From(s)) }) {
			t.Fatalf("again: -run '%s' -seed=%d", t.Name(), s)
		}
	}
}
