// Package collective models collective operations of a group of devices: the messages
// and values of each step, the bytes that each device sends, and the time.
//
// A group of n devices works on arrays of n chunks. With four devices:
//
//	            before                          after
//	all-gather  a··· ·b·· ··c· ···d             abcd abcd abcd abcd
//	            every device has one chunk      every device has all chunks
//
//	reduce-     1 1 1 1  2 2 2 2                10 · · ·  · 10 · ·
//	scatter     3 3 3 3  4 4 4 4                · · 10 ·  · · · 10
//	            every device has an array       device i has chunk i of the sum
//
//	all-reduce  1 2 3 4                         10 10 10 10
//	            every device has an array       every device has the sum
//
//	all-to-all  abcd efgh ijkl mnop             aeim bfjn cgko dhlp
//	            chunk j of device i             is chunk i of device j
//
//	permute     a b c d                         d a b c
//	            every device has an array       and passes it to the next one
//
//	broadcast   a · · ·                         a a a a
//	            device 0 has an array           every device has it
//
// An all-reduce is a reduce-scatter followed by an all-gather, and costs as much
// as both. An array that stays partitioned needs the reduce-scatter only.
//
// [Steps] lists the messages of an algorithm, [Trace] runs them on values, and
// [NewCost] has their closed forms, which need no steps. [Over] finds the time
// over the links of a cluster. [Groups] lists the devices of each group of mesh
// axes, as JAX and XLA form them.
//
// Bytes always count the whole array: for an all-gather its result, for the
// other operations the input of one device.
package collective

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Op is a collective operation.
type Op string

// The operations.
const (
	AllGather     Op = "all-gather"
	ReduceScatter Op = "reduce-scatter"
	AllReduce     Op = "all-reduce"
	AllToAll      Op = "all-to-all"
	Permute       Op = "permute" // device i sends to device i+1, the last one to device 0
	Broadcast     Op = "broadcast"
)

// Algorithm is a way of performing an operation.
type Algorithm string

// The algorithms.
const (
	// Ring passes chunks to the next device. At every step, every link carries a chunk.
	Ring Algorithm = "ring"
	// Bidirectional passes chunks to both neighbors, which needs half the steps.
	Bidirectional Algorithm = "bidirectional"
	// Tree doubles the number of devices that have the array at every step. It
	// has the fewest steps, but sends the whole array at each.
	Tree Algorithm = "tree"
	// Direct sends every chunk from its source to its destination.
	Direct Algorithm = "direct"
)

// algorithms lists the algorithms of every operation, the default first.
var algorithms = []struct {
	op   Op
	list []Algorithm
}{
	{AllGather, []Algorithm{Ring, Bidirectional}},
	{ReduceScatter, []Algorithm{Ring, Bidirectional}},
	{AllReduce, []Algorithm{Ring, Bidirectional, Tree}},
	{AllToAll, []Algorithm{Direct}},
	{Permute, []Algorithm{Direct}},
	{Broadcast, []Algorithm{Ring, Tree}},
}

// Ops lists the operations.
func Ops() []Op {
	ops := make([]Op, len(algorithms))
	for i, a := range algorithms {
		ops[i] = a.op
	}
	return ops
}

// Algorithms lists the algorithms of an operation, the default first.
func Algorithms(op Op) []Algorithm {
	for _, a := range algorithms {
		if a.op == op {
			return append([]Algorithm(nil), a.list...)
		}
	}
	return nil
}

// usual returns the default algorithm of an operation.
func usual(op Op) Algorithm {
	switch op {
	case AllToAll, Permute:
		return Direct
	}
	return Ring
}

func check(op Op, alg Algorithm, n int) error {
	list := Algorithms(op)
	if list == nil {
		return fail("there is no operation %s", wording.Quote(string(op))).WithHint("%s", wording.Suggest(string(op), Ops()))
	}
	switch {
	case !slices.Contains(list, alg):
		return fail("%s has no algorithm %s", op, wording.Quote(string(alg))).WithHint("%s", wording.Suggest(string(alg), list))
	case n < 1 || n > mesh.MaxDevices:
		return fail("a group has %d devices, but must have 1 to %d", n, mesh.MaxDevices)
	}
	return nil
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "collective", format, args...)
}
