package sampler

import (
	"sort"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
	"github.com/meshfeed/meshfeed/core/status"
)

// An order "blocks.1:W:B:H" visits a dataset block by block, for data that are slow to
// read at random: files that must be decoded, or that are far away. A block is a run
// of consecutive records.
//
// Every epoch permutes all n blocks, and divides them in this order into k windows:
// as few as possible, if a window has at most W blocks. The first n mod k windows have
// n/k + 1 blocks, and the others n/k, rounded down. So no window is much smaller than
// the others, and no batch comes from a few blocks only. The records of a window are
// permuted among themselves.
//
// A loader needs the blocks of one window at a time, or of two where a batch crosses
// from one to the next.
//
// If B is positive, every block has B records, except that the last block of the
// dataset may have fewer, and H is 0. If B is 0, the blocks are the dataset's units of
// storage, and H is [UnitsHash] of their sizes.
//
// [Windows] tells how well an epoch is shuffled.
var blocksKind = kind{
	name: "blocks.1", form: "blocks.1:W:B:H with windows of W blocks of B records", parameters: 3,
	check: checkBlocks,
	make:  newBlocks,

	derive:    deriveBlocks,
	short:     2,
	shortForm: "blocks, blocks:W, or blocks:W:B with windows of W blocks of B records",
	accepts: func(given, full []int64) bool {
		return (given[0] == 0 || given[0] == full[0]) && given[1] == full[1]
	},
}

// Limits of the parameters of a block order.
const (
	MaxWindow = 1 << 20 // blocks
	MaxBlock  = 1 << 40 // records
)

// Blocks returns the name of the order with windows of at most this many blocks, each
// of this many records.
func Blocks(window, block int64) string {
	return name{blocksKind.name, []int64{window, block, 0}}.String()
}

// Units returns the name of the order with windows of at most this many units of a
// dataset. Sizes holds the number of records of every unit.
func Units(window int64, sizes []int64) string {
	return name{blocksKind.name, []int64{window, 0, UnitsHash(sizes)}}.String()
}

// UnitsHash returns 52 bits that identify the sizes of a dataset's units. An order with
// these units has them in its name, so that a state is rejected if the units changed.
// Units without records have no effect.
func UnitsHash(sizes []int64) int64 {
	h := permutation.Hash(useUnits)
	for _, n := range sizes {
		if n > 0 {
			h = permutation.Hash(h, uint64(n))
		}
	}
	return int64(h >> 12)
}

// NeedsUnits reports whether the order with a name, short or full, has the units of a
// dataset as its blocks.
func NeedsUnits(text string) bool {
	n := split(text)
	return (n.kind == blocksKind.name || n.kind == "blocks") && (len(n.parameters) < 2 || n.parameters[1] == 0)
}

func checkBlocks(n name) error {
	switch window, block, hash := n.parameters[0], n.parameters[1], n.parameters[2]; {
	case window < 1 || window > MaxWindow:
		return wrong(n.String(), "has windows of %d blocks, but they may have from 1 to %d", window, MaxWindow)
	case block < 0 || block > MaxBlock:
		return wrong(n.String(), "has blocks of %d records, but they may have from 1 to 2^40", block)
	case block > 0 && hash != 0:
		return wrong(n.String(), "has blocks of %d records, but also the hash of a dataset's units", block)
	case hash < 0 || hash >= 1<<52:
		return wrong(n.String(), "has a hash of more than 52 bits")
	}
	return nil
}

// AutoWindowBytes bounds the rows of a window if its size follows from a run. Two windows
// fit in the cache of package arrowio, which has 256 MiB by default: one is delivered while
// the next is decoded. The bound is the same in every run, so that the order does not
// depend on the memory of a host.
const AutoWindowBytes = 128 << 20

// deriveBlocks returns the parameters of an order with the user's window and block. 0
// stands for the default of each. The default block is a unit of the dataset. The
// default window has four blocks per row of a batch, so that the variance of
// [Windows.Variance] is at most about 1.25, but not more than fit in AutoWindowBytes.
func deriveBlocks(given []int64, r Run) ([]int64, error) {
	window, block, hash := given[0], given[1], int64(0)
	d := division(evenBlocks{max(block, 1), r.Records})
	if block == 0 {
		if r.Units == nil {
			return nil, fail(`order "blocks" has the units of a dataset as its blocks, but the dataset is not known here`).
				WithHint("give the number of records of a block: blocks:W:B, with W = 0 for the default window")
		}
		d, hash = newUnitBlocks(r.Units), UnitsHash(r.Units)
	}
	if n := max(d.count(), 1); window == 0 {
		size := (r.Records + n - 1) / n
		window = max(1, min(4*min(r.Batch, MaxWindow), AutoWindowBytes/max(r.RowBytes, 1)/max(size, 1), n, MaxWindow))
	}
	return []int64{window, block, hash}, nil
}

func newBlocks(n name, seed, records int64, units []int64) (Order, error) {
	window, block, hash := n.parameters[0], n.parameters[1], n.parameters[2]
	if block > 0 {
		return newBlockOrder(n, seed, window, evenBlocks{block, records}), nil
	}
	if units == nil {
		return nil, fail("order %q has the units of a dataset as its blocks, but the dataset is not known here", n.String()).
			With("order", n.String()).WithHint("give the dataset (Go: Certificate.Of; Python: certificate.check(dataset=ds)), or use blocks with a number of records")
	}
	if live := UnitsHash(units); live != hash {
		return nil, status.Errorf(status.Incompatible, "sampler", "order %q is for units with the hash %d, but the units of this dataset have %d", n.String(), hash, live).
			With("order", n.String()).WithHint("open the dataset as it was stored when the order was made")
	}
	return newBlockOrder(n, seed, window, newUnitBlocks(units)), nil
}

// division is how a dataset is divided into blocks. No block is empty.
type division interface {
	records() int64
	count() int64

	// block returns the first record of a block, and the number of its records.
	block(b int64) (first, size int64)

	// starts returns a function that maps a number of blocks to the number of
	// records in the first so many blocks, as p permutes them. Only numbers in
	// the list may be asked for.
	starts(p permutation.Permutation, list windowList) func(w int64) int64

	// spread returns the sum of the squares of the sizes, and the largest size.
	// There must be a block.
	spread() (squares float64, largest int64)
}

// windowList divides n blocks into k windows of nearly equal numbers of blocks.
type windowList struct{ blocks, windows int64 }

// start returns the number of blocks before window w. For w = windows, these are all.
func (l windowList) start(w int64) int64 {
	return w*(l.blocks/max(l.windows, 1)) + min(w, l.blocks%max(l.windows, 1))
}

// blockOrder is a block order.
type blockOrder struct {
	seed     int64
	division division
	list     windowList
	name     string
}

func newBlockOrder(n name, seed, window int64, d division) *blockOrder {
	blocks := d.count()
	return &blockOrder{seed, d, windowList{blocks, (blocks + window - 1) / window}, n.String()}
}

func (o *blockOrder) Name() string { return o.name }
func (o *blockOrder) Len() int64   { return o.division.records() }

func (o *blockOrder) Epoch(epoch int64) Epoch {
	e := &blockEpoch{blockOrder: o, number: epoch}
	e.permuted = permutation.New(o.list.blocks, useBlocks, uint64(o.seed), uint64(epoch), uint64(o.Len()))
	return e
}

// blockEpoch is one epoch of a block order.
type blockEpoch struct {
	*blockOrder
	number   int64
	permuted permutation.Permutation // order of the blocks
	once     sync.Once
	starts   func(w int64) int64            // set once
	recent   [2]atomic.Pointer[blockWindow] // the windows used last, by even and odd numbers
}

func (e *blockEpoch) At(position int64) int64 {
	check(position, 1, e.Len())
	w := e.window(position)
	return w.record(w.permuted.At(position - w.start))
}

func (e *blockEpoch) Fill(dst []int64, position int64) {
	check(position, int64(len(dst)), e.Len())
	for len(dst) > 0 {
		w := e.window(position)
		run := dst[:min(int64(len(dst)), w.end-position)]
		w.permuted.Fill(run, position-w.start)
		for i, r := range run {
			run[i] = w.record(r)
		}
		dst, position = dst[len(run):], position+int64(len(run))
	}
}

// Window implements [Windowed].
func (e *blockEpoch) Window(position int64) (end int64, blocks [][2]int64) {
	check(position, 1, e.Len())
	w := e.window(position)
	blocks = make([][2]int64, len(w.blocks))
	start := int64(0)
	for i, b := range w.blocks {
		blocks[i] = [2]int64{start + b.shift, b.end + b.shift}
		start = b.end
	}
	return w.end, blocks
}

// window returns the window of a position. If two goroutines make it at the same time,
// their results are equal.
func (e *blockEpoch) window(position int64) *blockWindow {
	for i := range e.recent {
		if w := e.recent[i].Load(); w != nil && w.start <= position && position < w.end {
			return w
		}
	}
	e.once.Do(func() { e.starts = e.division.starts(e.permuted, e.list) })
	number := int64(sort.Search(int(e.list.windows), func(w int) bool { return e.starts(int64(w)+1) > position }))
	w := e.makeWindow(number, e.starts(number))
	e.recent[number%2].Store(w)
	return w
}

// blockWindow is a window of an epoch. Its records are numbered block by block.
type blockWindow struct {
	start, end int64                   // positions [start, end) of the epoch
	permuted   permutation.Permutation // order of its records
	blocks     []windowBlock
	guide      []int32 // by number in the window, shifted: the first block that may hold it
	shift      int
}

// windowBlock is a block of a window.
type windowBlock struct {
	end   int64 // the number of the window's records up to the end of the block
	shift int64 // a record of the dataset, less its number in the window
}

func (e *blockEpoch) makeWindow(number, start int64) *blockWindow {
	first, last := e.list.start(number), e.list.start(number+1)
	w := &blockWindow{start: start, blocks: make([]windowBlock, last-first)}
	numbers := make([]int64, last-first)
	e.permuted.Fill(numbers, first)
	size := int64(0)
	for i, b := range numbers {
		record, n := e.division.block(b)
		w.blocks[i] = windowBlock{end: size + n, shift: record - size}
		size += n
	}
	w.end = start + size
	w.permuted = permutation.New(size, useWindow, uint64(e.seed), uint64(e.number), uint64(e.Len()), uint64(number))
	w.makeGuide(size)
	return w
}

// makeGuide makes the guide: from two to four entries per block, or one per record if
// there are fewer records. So the search for a block takes a step or two.
func (w *blockWindow) makeGuide(size int64) {
	for size>>w.shift > 4*int64(len(w.blocks)) {
		w.shift++
	}
	w.guide = make([]int32, (size-1)>>w.shift+1)
	b := int32(0)
	for i := range w.guide {
		for w.blocks[b].end <= int64(i)<<w.shift {
			b++
		}
		w.guide[i] = b
	}
}

// record returns the record of the dataset that has number r in the window.
func (w *blockWindow) record(r int64) int64 {
	b := w.guide[r>>w.shift]
	for w.blocks[b].end <= r {
		b++
	}
	return r + w.blocks[b].shift
}

// evenBlocks divides records into blocks of equal size. The last one may be smaller.
type evenBlocks struct{ size, total int64 }

func (d evenBlocks) records() int64 { return d.total }
func (d evenBlocks) count() int64   { return (d.total + d.size - 1) / d.size }

func (d evenBlocks) block(b int64) (first, size int64) {
	return b * d.size, min(d.size, d.total-b*d.size)
}

func (d evenBlocks) starts(p permutation.Permutation, list windowList) func(w int64) int64 {
	short, missing := list.blocks, list.blocks*d.size-d.total // position of the smaller block, and what it lacks
	if missing > 0 {
		short = p.Position(list.blocks - 1)
	}
	return func(w int64) int64 {
		k := list.start(w)
		if k > short {
			return k*d.size - missing
		}
		return k * d.size
	}
}

func (d evenBlocks) spread() (squares float64, largest int64) {
	_, last := d.block(d.count() - 1)
	return float64(d.count()-1)*float64(d.size)*float64(d.size) + float64(last)*float64(last), min(d.size, d.total)
}

// unitBlocks has the units of a dataset as its blocks.
type unitBlocks struct {
	firsts []int64 // by unit, and one after the last: the number of records before it
}

// newUnitBlocks leaves out units without records.
func newUnitBlocks(sizes []int64) unitBlocks {
	d := unitBlocks{firsts: make([]int64, 1, len(sizes)+1)}
	for _, n := range sizes {
		if n > 0 {
			d.firsts = append(d.firsts, d.records()+n)
		}
	}
	return d
}

func (d unitBlocks) records() int64 { return d.firsts[len(d.firsts)-1] }
func (d unitBlocks) count() int64   { return int64(len(d.firsts)) - 1 }

func (d unitBlocks) block(b int64) (first, size int64) {
	return d.firsts[b], d.firsts[b+1] - d.firsts[b]
}

func (d unitBlocks) starts(p permutation.Permutation, list windowList) func(w int64) int64 {
	starts, sum := make([]int64, 0, list.windows+1), int64(0)
	next := int64(0) // blocks before the next window
	var blocks [1024]int64
	for k := int64(0); k < list.blocks; {
		run := blocks[:min(int64(len(blocks)), list.blocks-k)]
		p.Fill(run, k)
		for _, b := range run {
			if k == next {
				starts = append(starts, sum)
				next = list.start(int64(len(starts)))
			}
			sum += d.firsts[b+1] - d.firsts[b]
			k++
		}
	}
	starts = append(starts, sum)
	return func(w int64) int64 { return starts[w] }
}

func (d unitBlocks) spread() (squares float64, largest int64) {
	for b := range d.count() {
		_, n := d.block(b)
		squares += float64(n) * float64(n)
		largest = max(largest, n)
	}
	return squares, largest
}
