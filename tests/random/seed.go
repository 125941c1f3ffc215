// Package random draws the random inputs of tests: numbers, meshes, specs, fields,
// damage. A seed determines all of them. The log of a failed test names the seed,
// and the flag -seed repeats the test:
//
//	go test ./core/loader -run TestLoadings -seed=17
//
// [New] is for a test that draws once. [Rounds] is for a test with many random
// rounds, each with its own seed.
package random

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 draws a new one")

// New returns a generator, and logs the flags that run the test again with the
// same numbers. Parallel parts of a test need a generator each.
func New(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat: -run '%s' -seed=%d", t.Name(), s)
	return From(s)
}

// From returns the generator of a seed.
func From(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Count returns the number of rounds of a test: deep with MESHFEED_DEEP=1, a fifth
// of quick under the race detector, or else quick.
func Count(quick, deep int) int {
	switch {
	case os.Getenv("MESHFEED_DEEP") != "":
		return deep
	case Race:
		return quick / 5
	}
	return quick
}

// Rounds runs as many rounds as [Count] returns, or the one round of -seed. It
// stops at the first failure.
func Rounds(t *testing.T, quick, deep int, test func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	rounds, first := Count(quick, deep), rand.Uint64()
	if *seed != 0 {
		rounds, first = 1, *seed
	}
	for i := range uint64(rounds) {
		s := first + i
		if !t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) { test(t, From(s)) }) {
			t.Fatalf("repeat: -run '%s' -seed=%d", t.Name(), s)
		}
	}
}
