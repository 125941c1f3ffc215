//go:build !race

package random

// race reports whether the race detector is on, which is ten times slower.
const race = false
