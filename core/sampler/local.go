package sampler

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// The name of a local order carries its parameters, because they belong to the
// first loader of a run and every later one needs the same: [Local] writes it.
//
// An order "local.1:G:B" over N records cuts them into G parts of n = N/G
// records, rounded down, one behind the other; the last N mod G belong to no
// part. Every part is shuffled by itself, anew in every epoch. A batch of B
// rows consists of G blocks of b = B/G rows, and block g takes the next b
// records of part g. So whoever holds only block g of every batch reads only
// part g. The positions behind the last whole batch hold what is left over:
// first of part 0, then of part 1, and so on; then the N mod G records in
// their own order. These are fewer than B, so nothing but the remainder's
// place is special. Loaders that drop the remainder never deliver the
// N mod G.
//
// The order is a function of the position like any other. A loader with other
// batches or on another mesh follows the same sequence; only what it reads is
// then spread over several parts.
const localPrefix = "local.1:"

// Limits of a local order's parameters.
const (
	MaxLocalParts = 1 << 20
	MaxLocalBatch = 1 << 53
)

// Local gives the name of the local order of some parts for a batch.
func Local(parts, batch int64) string {
	return localPrefix + strconv.FormatInt(parts, 10) + ":" + strconv.FormatInt(batch, 10)
}

// IsLocal says whether a name is that of a local order. Its parameters may
// still be wrong.
func IsLocal(name string) bool { return strings.HasPrefix(name, localPrefix) }

// local is a local order.
type local struct {
	seed, records int64
	parts, batch  int64
}

// newLocal reads the parameters in the name.
func newLocal(name string, seed, records int64) (Order, error) {
	wrong := func(format string, args ...any) (Order, error) {
		return nil, fail("order %q "+format, append([]any{name}, args...)...).With("order", name).
			WithHint("use the name in the state of the first loader")
	}
	first, second, _ := strings.Cut(strings.TrimPrefix(name, localPrefix), ":")
	parts, err1 := strconv.ParseInt(first, 10, 64)
	batch, err2 := strconv.ParseInt(second, 10, 64)
	switch {
	case err1 != nil || err2 != nil || Local(parts, batch) != name:
		return wrong("is not local.1:G:B with a number of parts G and a batch size B")
	case parts < 1 || parts > MaxLocalParts:
		return wrong("has %d parts, but may have from 1 to %d", parts, MaxLocalParts)
	case batch < 1 || batch > MaxLocalBatch:
		return wrong("is for batches of %d rows, but they may have from 1 to 2^53", batch)
	case batch%parts != 0:
		return wrong("has %d parts, which do not divide a batch of %d: %d %% %d = %d", parts, batch, batch, parts, batch%parts)
	}
	return local{seed, records, parts, batch}, nil
}

func (l local) Name() string { return Local(l.parts, l.batch) }
func (l local) Len() int64   { return l.records }

func (l local) Epoch(epoch int64) Epoch {
	e := &localEpoch{local: l, number: epoch, part: l.records / l.parts, block: l.batch / l.parts}
	e.taken = e.part / e.block * e.block
	e.shuffles = make([]atomic.Pointer[permutation.Permutation], l.parts)
	return e
}

// localEpoch is one epoch of a local order. The shuffle of a part is made when
// a position of it is asked for: a process that needs one part of many makes
// one.
type localEpoch struct {
	local
	number   int64
	part     int64 // records of a part
	block    int64 // rows of a batch that come from one part
	taken    int64 // records of a part in whole batches
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

// fewRows is where filling the rows of a block begins to cost less than taking
// blocks of different parts together.
const fewRows = 4

// scatter is Fill for blocks of few rows, in whole batches.
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

// fill writes the records at index i of part g and behind it.
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

// locate gives the part of a position, its index in that part, and how many
// positions follow each other there. The records that belong to no part count
// as one part more.
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

// shuffle gives the permutation of a part. Two goroutines that ask for it first
// make it twice, which does no harm.
func (e *localEpoch) shuffle(g int64) permutation.Permutation {
	if p := e.shuffles[g].Load(); p != nil {
		return *p
	}
	p := permutation.New(e.part, useLocal, uint64(e.seed), uint64(e.number), uint64(e.records), uint64(e.parts), uint64(g))
	e.shuffles[g].Store(&p)
	return p
}
