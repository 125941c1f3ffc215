package sampler

import (
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// An order "local.1:G:B" over N records has G parts of n = N/G records, rounded
// down, one after the other. The last N mod G records belong to no part. Every
// part is shuffled separately, anew in every epoch.
//
// A batch of B rows consists of G blocks of b = B/G rows, and block g takes the next b
// records of part g. So a process that holds only block g of every batch reads only part g.
// The positions after the last whole batch hold the remaining records: first the records of
// part 0, then of part 1, and so on, then the N mod G records in their own order. There are
// fewer than B of these N mod G, so a loader that drops the remainder never delivers them.
//
// The order is a function of the position like any other. A loader with another
// batch size or on another mesh follows the same sequence; a process then reads
// from several parts.
var localKind = kind{
	name: "local.1", form: "local.1:G:B with G parts for batches of B", parameters: 2,
	check: checkLocal,
	make: func(n name, seed, records int64, _ []int64) (Order, error) {
		return local{seed, records, n.parameters[0], n.parameters[1]}, nil
	},

	derive:    func(_ []int64, r Run) ([]int64, error) { return []int64{r.Groups, r.Batch}, nil },
	shortForm: "local",
	accepts:   func(_, _ []int64) bool { return true },
}

// Limits of the parameters of a local order.
const (
	MaxLocalParts = 1 << 20
	MaxLocalBatch = 1 << 53
)

// Local returns the name of the local order with this number of parts for a batch size. The
// name contains both numbers, because a run that continues with another batch size or mesh
// must keep the numbers of its first loader.
func Local(parts, batch int64) string {
	return name{localKind.name, []int64{parts, batch}}.String()
}

// local is a local order.
type local struct {
	seed, records int64
	parts, batch  int64
}

func checkLocal(n name) error {
	parts, batch := n.parameters[0], n.parameters[1]
	switch {
	case parts < 1 || parts > MaxLocalParts:
		return wrong(n.String(), "has %d parts, but may have from 1 to %d", parts, MaxLocalParts)
	case batch < 1 || batch > MaxLocalBatch:
		return wrong(n.String(), "is for batches of %d rows, but they may have from 1 to 2^53", batch)
	case batch%parts != 0:
		return wrong(n.String(), "has %d parts, which do not divide a batch of %d: %d %% %d = %d", parts, batch, batch, parts, batch%parts)
	}
	return nil
}

func (l local) Name() string { return Local(l.parts, l.batch) }
func (l local) Len() int64   { return l.records }

func (l local) Epoch(epoch int64) Epoch {
	e := &localEpoch{local: l, number: epoch, part: l.records / l.parts, block: l.batch / l.parts}
	e.taken = e.part / e.block * e.block
	e.shuffles = make([]atomic.Pointer[permutation.Permutation], l.parts)
	return e
}

// localEpoch is one epoch of a local order. It computes the permutation of a part
// at the first use, because a process may need only a few parts.
type localEpoch struct {
	local
	number   int64
	part     int64 // records of a part
	block    int64 // rows of a batch that come from one part
	taken    int64 // records of a part that are in whole batches
	shuffles []atomic.Pointer[permutation.Permutation]
}

func (e *localEpoch) At(position int64) int64 {
	check(position, 1, e.records)
	g, i, _ := e.locate(position)
	if g == e.parts {
		return g*e.part + i
	}
	return g*e.part + e.shuffle(g).At(i)
}

func (e *localEpoch) Fill(dst []int64, position int64) {
	check(position, int64(len(dst)), e.records)
	if e.block < fewRows {
		n := min(int64(len(dst)), max(0, e.taken*e.parts-position))
		e.scatter(dst[:n], position)
		dst, position = dst[n:], position+n
	}
	for len(dst) > 0 {
		g, i, run := e.locate(position)
		run = min(run, int64(len(dst)))
		e.fill(dst[:run], g, i)
		dst, position = dst[run:], position+run
	}
}

// If a block has fewer than fewRows rows, Fill interleaves the permutations of
// several parts, which is faster than filling one block after the other.
const fewRows = 4

// scatter does the work of Fill for blocks of few rows. All positions must be in
// whole batches.
func (e *localEpoch) scatter(dst []int64, position int64) {
	const group = 64
	var of [group]permutation.Permutation
	var at, first [group]int64
	step, row := position/e.batch, position%e.batch
	g, i := row/e.block, row%e.block
	for len(dst) > 0 {
		n := min(group, len(dst))
		for k := range n {
			of[k], at[k], first[k] = e.shuffle(g), step*e.block+i, g*e.part
			if i++; i == e.block {
				g, i = g+1, 0
			}
			if g == e.parts {
				step, g = step+1, 0
			}
		}
		permutation.Images(dst[:n], of[:n], at[:n])
		for k := range n {
			dst[k] += first[k]
		}
		dst = dst[n:]
	}
}

// fill writes the records of part g to dst, starting with index i of the part.
func (e *localEpoch) fill(dst []int64, g, i int64) {
	if g == e.parts {
		for k := range dst {
			dst[k] = g*e.part + i + int64(k)
		}
		return
	}
	e.shuffle(g).Fill(dst, i)
	for k := range dst {
		dst[k] += g * e.part
	}
}

// locate returns the part of a position, its index in that part, and the number
// of positions up to the next part. The records that belong to no part are part
// number e.parts.
func (e *localEpoch) locate(position int64) (g, i, run int64) {
	if position < e.taken*e.parts {
		step, row := position/e.batch, position%e.batch
		g, i = row/e.block, row%e.block
		return g, step*e.block + i, e.block - i
	}
	position -= e.taken * e.parts
	if left := e.part - e.taken; position < left*e.parts {
		g, i = position/left, position%left
		return g, e.taken + i, left - i
	}
	return e.parts, position - (e.part-e.taken)*e.parts, e.records
}

// shuffle returns the permutation of a part. If two goroutines compute it at the
// same time, their results are equal.
func (e *localEpoch) shuffle(g int64) permutation.Permutation {
	if p := e.shuffles[g].Load(); p != nil {
		return *p
	}
	p := permutation.New(e.part, useLocal, uint64(e.seed), uint64(e.number), uint64(e.records), uint64(e.parts), uint64(g))
	e.shuffles[g].Store(&p)
	return p
}
