//go:build race

package gather

// underRace thins out the exhaustive tests: the race detector sees nothing of
// assembly, and slows the comparisons down ten times.
const underRace = 10
