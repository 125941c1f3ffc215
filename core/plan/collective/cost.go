package collective

import (
	"math"
	"math/bits"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
)

// Unknown is the time over a link without a known bandwidth.
const Unknown = -1

// maxNs bounds times, so that sums of them fit.
const maxNs = 1 << 53

// MaxBytes is the size of the largest array.
const MaxBytes = 1 << 53

// Cost is what an operation costs.
type Cost struct {
	Steps   int   // messages that a device sends one after the other
	Sent    int64 // bytes that the busiest device sends
	Network int64 // part of Sent that goes to other nodes; set by [Over] only
	Ns      int64 // time, or Unknown
}

// NewCost returns the cost of an operation on an array of the given bytes over
// equal links. The bandwidth of the link is what a device sends per second in
// all directions that the algorithm uses at once.
//
//	operation       algorithm      steps       bytes sent by the busiest device
//	all-gather,     ring           n-1         S(n-1)/n
//	reduce-scatter  bidirectional  n/2         S(n-1)/n
//	all-reduce      ring           2(n-1)      2S(n-1)/n
//	                bidirectional  2(n/2)      2S(n-1)/n
//	                tree           2⌈log₂ n⌉   S⌈log₂ n⌉
//	all-to-all      direct         n-1         S(n-1)/n
//	permute         direct         1           S
//	broadcast       ring           2(n-1)      S
//	                tree           ⌈log₂ n⌉    S⌈log₂ n⌉
//
// The time is steps · latency + bytes / bandwidth. The bytes are what a device
// sends. In a tree or a broadcast, devices wait for each other's messages: then
// each step counts, with S bytes in a tree and S/n in a ring.
//
// If S does not divide by the slots, the bytes are rounded up. With two
// directions, a device may send 2 bytes more, because it sends parts of
// different chunks.
//
// For the ring, see Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
// for clusters of workstations", 2009; for the closed forms, Thakur, Rabenseifner
// and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.
func NewCost(op Op, alg Algorithm, n int, bytes int64, link hardware.Link) (Cost, error) {
	if err := check(op, alg, n); err != nil {
		return Cost{}, err
	}
	if bytes < 0 || bytes > MaxBytes {
		return Cost{}, fail("an array has %d bytes, but must have 0 to 2^53", bytes)
	}
	return cost(op, alg, n, bytes, link), nil
}

func cost(op Op, alg Algorithm, n int, s int64, link hardware.Link) Cost {
	if n <= 1 {
		return Cost{}
	}
	c, serial := Cost{Steps: n - 1, Sent: part(s, n)}, int64(0)
	logarithm := bits.Len(uint(n - 1)) // ⌈log₂ n⌉
	switch {
	case op == Permute:
		c = Cost{Steps: 1, Sent: s}
	case op == Broadcast && alg == Ring:
		c = Cost{Steps: 2*n - 2, Sent: s}
		serial = part(2*s, n)
	case op == Broadcast:
		c = Cost{Steps: logarithm, Sent: s * int64(logarithm)}
	case op == AllReduce && alg == Tree:
		c = Cost{Steps: 2 * logarithm, Sent: s * int64(logarithm)}
		serial = 2 * c.Sent
	case op == AllReduce:
		c = Cost{Steps: 2*n - 2, Sent: part(2*s, n)}
	}
	if alg == Bidirectional {
		c.Steps = c.Steps / (n - 1) * (n / 2)
	}
	c.Ns = duration(c.Steps, float64(max(c.Sent, serial)), link)
	return c
}

// part returns s·(n-1)/n, rounded up: all chunks but the smallest.
func part(s int64, n int) int64 { return s - s/int64(n) }

// duration returns steps · latency + bytes / bandwidth in nanoseconds.
func duration(steps int, bytes float64, link hardware.Link) int64 {
	if !link.Known() {
		return Unknown
	}
	return min(maxNs, int64(steps)*link.LatencyNs+nanoseconds(bytes, link))
}

// nanoseconds returns bytes / bandwidth, rounded to the nearest integer, ties
// upward, but at most maxNs.
func nanoseconds(bytes float64, link hardware.Link) int64 {
	ns := float64(bytes*1e9) / float64(link.BytesPerSecond)
	return int64(math.Min(maxNs, math.Floor(ns+0.5)))
}
