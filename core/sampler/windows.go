package sampler

import (
	"fmt"
	"math"

	"github.com/meshfeed/meshfeed/internal/wording"
)

// Windowed is implemented by the epochs of orders that visit a dataset block by block.
type Windowed interface {
	Epoch

	// Window returns the window of a position: the position where it ends, and
	// the ranges of records that are its blocks, in their order in the epoch. It
	// panics if the position is outside the epoch.
	Window(position int64) (end int64, blocks [][2]int64)
}

// Windows tells how well an order that visits a dataset block by block is shuffled,
// and what that costs.
type Windows struct {
	Blocks  int64 // blocks in the dataset, without blocks that have no records
	Windows int64 // windows in an epoch
	Window  int64 // blocks of a window, at most
	Records int64 // records in a window, at most

	// Effective is how many blocks of equal size would have the same variance as
	// the blocks of the dataset. It is the square of the sum of the sizes, divided
	// by the sum of their squares (Kish, Survey Sampling, 1965, section 11.7).
	Effective float64
}

// WindowsOf returns the windows of an order. It returns false for an order that has
// none, because it visits the records of the whole dataset at random or in sequence.
func WindowsOf(o Order) (Windows, bool) {
	b, ok := o.(*blockOrder)
	if !ok {
		return Windows{}, false
	}
	w := Windows{Blocks: b.list.blocks, Windows: b.list.windows}
	if w.Blocks == 0 {
		return w, true
	}
	w.Window = b.list.start(1)
	squares, largest := b.division.spread()
	w.Records = min(w.Window*largest, b.Len())
	w.Effective = float64(b.Len()) * (float64(b.Len()) / squares)
	return w, true
}

// Variance returns an upper bound of the variance of the mean of a batch, in relation
// to the mean of as many independent records. With n blocks, of which at least w are
// in a window, it is
//
//	1 + (batch-1)/w · (n-w)/(n-1)
//
// which is the design effect of cluster sampling (Kish, Survey Sampling, 1965, section
// 5.4) with the correction for a finite number of clusters. It is reached if all
// records of a block are equal and the blocks differ. If blocks have unequal sizes,
// n-1 is the effective number of blocks less 1. The result is 1 if a window has all
// blocks.
func (w Windows) Variance(batch int64) float64 {
	if w.Windows <= 1 || batch <= 1 {
		return 1
	}
	n, least := float64(w.Blocks), float64(w.Blocks/w.Windows)
	rest := float64(batch - 1)
	return 1 + min(rest, rest*(n-least)/(least*max(w.Effective-1, 1e-9)))
}

// Quality holds the numbers that tell a user how well an order with windows shuffles
// batches, and what that costs.
type Quality struct {
	Blocks, Windows, Window, Records int64 // as in Windows

	Bytes   int64 // bytes of the largest window, in the fields that a batch has
	Percent int64 // Windows.Variance in percent, rounded up
}

// Quality returns the numbers for batches of so many rows, and for so many bytes of a record.
func (w Windows) Quality(batch, bytes int64) Quality {
	window := int64(math.MaxInt64)
	if bytes == 0 || w.Records <= window/bytes {
		window = w.Records * bytes
	}
	return Quality{w.Blocks, w.Windows, w.Window, w.Records, window, int64(math.Ceil(100 * w.Variance(batch)))}
}

// String says how well the order shuffles, and what it costs.
func (q Quality) String() string {
	blocks, records := wording.Count(q.Blocks, "block", "blocks"), wording.Count(q.Records, "record", "records")
	if q.Windows <= 1 {
		return fmt.Sprintf("one window has all of the %s: %s of %s; that is a full shuffle", blocks, records, wording.Bytes(q.Bytes))
	}
	return fmt.Sprintf("an epoch has %s of at most %d of the %s, and a window has at most %s of %s; the variance of a batch's mean is at most %d.%02d times the variance of independent records",
		wording.Count(q.Windows, "window", "windows"), q.Window, blocks, records, wording.Bytes(q.Bytes), q.Percent/100, q.Percent%100)
}
