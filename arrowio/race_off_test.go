//go:build !race

package arrowio_test

// underRace says that the race detector makes everything ten times slower.
const underRace = false
