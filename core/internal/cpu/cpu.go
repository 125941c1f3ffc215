// Package cpu says which vector instructions this processor, and the system on
// it, run. The packages with assembly ask it before they call a kernel, and
// have a portable twin for where the answer is no, as it is everywhere but on
// amd64.
package cpu

// Level is a set of vector instructions. A higher one holds the lower ones.
type Level int

const (
	None   Level = iota
	AVX2         // vectors of 256 bits
	AVX512       // vectors of 512 bits, with products of 64 bits, that do not slow the clock
)

func (l Level) String() string { return [...]string{"none", "AVX2", "AVX-512"}[l] }
