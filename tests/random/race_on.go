//go:build race

package random

// Race reports whether the race detector is on, which makes tests ten times slower.
// A test may then leave out cases that differ in their data but not in their concurrency.
const Race = true
