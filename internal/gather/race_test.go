//go:build race

package gather

// underRace shortens the exhaustive tests. The race detector does not see assembly,
// and makes the comparisons ten times slower.
const underRace = 10
