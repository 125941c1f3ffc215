package sampler

import (
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// An order "blocks.1:W:B:H" visits a dataset block by block, for data that are slow to
// read at random: files that must be decoded, or that are far away. A block is a run
// of consecutive records.
//
// Every epoch permutes all blocks. W permuted blocks, one after the other, form a
// window; the last window of an epoch may have fewer. The records of a window are
// permuted among themselves. So a loader needs the blocks of one window at a time, or
// of two where a batch crosses from one to the next.
//
// If B is positive, every block has B records, except that the last one may have
// fewer, and H is 0. If B is 0, the blocks are the units in which the dataset is
// stored, and H is [UnitsHash] of their sizes: only [Units] makes such an order.
//
// [BlocksVariance] tells how well an epoch is shuffled.
var blocksKind = kind{
	name: "blocks.1", form: "blocks.1:W:B:H with windows of W blocks of B records", parameters: 3,
	make: func(n name, seed, records int64) (Order, error) {
		if err := checkBlocks(n); err != nil {
			return nil, err
		}
		if n.parameters[1] == 0 {
			return nil, wrong(n.String(), "has the units of a dataset as its blocks, but their sizes are not given")
		}
		return blocks{seed, n.parameters[0], evenBlocks{n.parameters[1], records}, n.String()}, nil
	},
}

// Limits of the parameters of a block order.
const (
	MaxWindow = 1 << 20 // blocks
	MaxBlock  = 1 << 40 // records
)

// Blocks returns the name of the order with windows of this many blocks, each of this
// many records.
func Blocks(window, block int64) string {
	return name{blocksKind.name, []int64{window, block, 0}}.String()
}

// Units returns the order with windows of this many units of a dataset. Sizes holds
// the number of records of every unit; the caller must not change it. The seed and the
// sum of the sizes are bounded as in [New].
func Units(window, seed int64, sizes []int64) (Order, error) {
	u := &unitBlocks{sizes: sizes, firsts: make([]int64, len(sizes))}
	for i, n := range sizes {
		if n < 0 {
			return nil, fail("unit %d of the dataset has %d records", i, n).With("unit", i)
		}
		if n > MaxRecords-u.total {
			return nil, fail("the units of the dataset have more than 2^40 records").With("unit", i)
		}
		u.firsts[i] = u.total
		u.total += n
	}
	n := name{blocksKind.name, []int64{window, 0, UnitsHash(sizes)}}
	if err := checkBlocks(n); err != nil {
		return nil, err
	}
	if _, err := New(Sequential, seed, u.total); err != nil {
		return nil, err
	}
	return blocks{seed, window, u, n.String()}, nil
}

// UnitsHash returns 52 bits that identify the sizes of a dataset's units. An order with
// these units has them in its name, so that a state is rejected if the units changed.
func UnitsHash(sizes []int64) int64 {
	h := permutation.Hash(useUnits, uint64(len(sizes)))
	for _, n := range sizes {
		h = permutation.Hash(h, uint64(n))
	}
	return int64(h >> 12)
}

// BlocksVariance bounds the variance of the mean of a batch, in relation to a batch of
// independent records, if windows of this many of the dataset's blocks are shuffled:
//
//	1 + (batch/window) (1 - window/blocks)
//
// It is reached if all records of a block are equal and the blocks differ. It is 1 for
// a full shuffle.
func BlocksVariance(batch, window, blocks int64) float64 {
	if window >= blocks {
		return 1
	}
	return 1 + float64(batch)/float64(window)*(1-float64(window)/float64(blocks))
}

func checkBlocks(n name) error {
	switch window, block, hash := n.parameters[0], n.parameters[1], n.parameters[2]; {
	case window < 1 || window > MaxWindow:
		return wrong(n.String(), "has windows of %d blocks, but they may have from 1 to %d", window, MaxWindow)
	case block < 0 || block > MaxBlock:
		return wrong(n.String(), "has blocks of %d records, but they may have from 1 to 2^40", block)
	case block > 0 && hash != 0:
		return wrong(n.String(), "has a hash of units, but blocks of %d records", block)
	case hash < 0 || hash >= 1<<52:
		return wrong(n.String(), "has a hash of more than 52 bits")
	}
	return nil
}

// division is how a dataset is divided into blocks.
type division interface {
	records() int64
	count() int64

	// block returns the first record of a block, and the number of its records.
	block(b int64) (first, size int64)

	// starts returns a function that maps the number of a window, or the number of
	// windows, to the position where it begins, if the blocks are permuted by p.
	starts(p permutation.Permutation, window int64) func(w int64) int64
}

// blocks is a block order.
type blocks struct {
	seed, window int64
	division     division
	name         string
}

func (b blocks) Name() string { return b.name }
func (b blocks) Len() int64   { return b.division.records() }

func (b blocks) Epoch(epoch int64) Epoch {
	n := b.division.count()
	e := &blocksEpoch{blocks: b, number: epoch, windows: (n + b.window - 1) / b.window}
	e.permuted = permutation.New(n, useBlocks, uint64(b.seed), uint64(epoch), uint64(b.Len()))
	e.starts = sync.OnceValue(func() func(int64) int64 { return b.division.starts(e.permuted, b.window) })
	return e
}

// blocksEpoch is one epoch of a block order.
type blocksEpoch struct {
	blocks
	number   int64
	windows  int64
	permuted permutation.Permutation // of the blocks
	starts   func() func(w int64) int64
	last     atomic.Pointer[blocksWindow] // the window used last
}

// blocksWindow is a window of an epoch. Its records are numbered block by block.
type blocksWindow struct {
	start, end int64                   // positions [start, end) of the epoch
	permuted   permutation.Permutation // of its records
	firsts     []int64                 // by block: its first record in the dataset
	ends       []int64                 // by block: the number of the window's records up to its end
}

func (e *blocksEpoch) At(position int64) int64 {
	check(position, 1, e.Len())
	w := e.at(position)
	return w.record(w.permuted.At(position - w.start))
}

func (e *blocksEpoch) Fill(dst []int64, position int64) {
	check(position, int64(len(dst)), e.Len())
	for len(dst) > 0 {
		w := e.at(position)
		run := dst[:min(int64(len(dst)), w.end-position)]
		w.permuted.Fill(run, position-w.start)
		for i, r := range run {
			run[i] = w.record(r)
		}
		dst, position = dst[len(run):], position+int64(len(run))
	}
}

// record returns the record of the dataset that is number r of the window.
func (w *blocksWindow) record(r int64) int64 {
	b, _ := slices.BinarySearch(w.ends, r+1)
	start := int64(0)
	if b > 0 {
		start = w.ends[b-1]
	}
	return w.firsts[b] + r - start
}

// at returns the window of a position. If two goroutines make it at the same time,
// their results are equal.
func (e *blocksEpoch) at(position int64) *blocksWindow {
	if w := e.last.Load(); w != nil && w.start <= position && position < w.end {
		return w
	}
	starts := e.starts()
	number := int64(sort.Search(int(e.windows), func(w int) bool { return starts(int64(w)+1) > position }))
	w := e.makeWindow(number, starts)
	e.last.Store(w)
	return w
}

func (e *blocksEpoch) makeWindow(number int64, starts func(int64) int64) *blocksWindow {
	n := min(e.window, e.division.count()-number*e.window)
	w := &blocksWindow{start: starts(number), firsts: make([]int64, n), ends: make([]int64, n)}
	e.permuted.Fill(w.firsts, number*e.window)
	size := int64(0)
	for i, b := range w.firsts {
		first, n := e.division.block(b)
		size += n
		w.firsts[i], w.ends[i] = first, size
	}
	w.end = w.start + size
	w.permuted = permutation.New(size, useWindow, uint64(e.seed), uint64(e.number), uint64(e.Len()), uint64(number))
	return w
}

// evenBlocks divides records into blocks of equal size. The last one may be smaller.
type evenBlocks struct{ size, total int64 }

func (d evenBlocks) records() int64 { return d.total }
func (d evenBlocks) count() int64   { return (d.total + d.size - 1) / d.size }

func (d evenBlocks) block(b int64) (first, size int64) {
	return b * d.size, min(d.size, d.total-b*d.size)
}

func (d evenBlocks) starts(p permutation.Permutation, window int64) func(w int64) int64 {
	n, short, missing := d.count(), int64(math.MaxInt64), d.count()*d.size-d.total
	if missing > 0 {
		short = p.Position(n - 1)
	}
	return func(w int64) int64 {
		k := min(w*window, n)
		if k > short {
			return k*d.size - missing
		}
		return k * d.size
	}
}

// unitBlocks has the units of a dataset as its blocks.
type unitBlocks struct {
	sizes  []int64
	firsts []int64
	total  int64
}

func (d *unitBlocks) records() int64 { return d.total }
func (d *unitBlocks) count() int64   { return int64(len(d.sizes)) }

func (d *unitBlocks) block(b int64) (first, size int64) { return d.firsts[b], d.sizes[b] }

func (d *unitBlocks) starts(p permutation.Permutation, window int64) func(w int64) int64 {
	const step = 4096
	n := d.count()
	list, at := []int64{0}, int64(0)
	order := make([]int64, min(n, step))
	for k := int64(0); k < n; k++ {
		if k%step == 0 {
			order = order[:min(step, n-k)]
			p.Fill(order, k)
		}
		at += d.sizes[order[k%step]]
		if (k+1)%window == 0 || k+1 == n {
			list = append(list, at)
		}
	}
	return func(w int64) int64 { return list[w] }
}
