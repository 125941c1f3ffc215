package loader

import (
	"runtime"
	"time"
)

const (
	crowded     = 16        // wakes in a row
	leastSpared = 64        // batches
	mostSpared  = 1024      // batches
	smallBatch  = 256 << 10 // bytes
	longStint   = 5 * time.Millisecond
)

// crowd knows whether more threads want to run than there are processors. There
// reading ahead costs more than it saves if batches are small: who takes one
// wakes the goroutine, has to stop for it where no other processor is free, and
// could have made the batch meanwhile. So where that came about a number of times
// in a row, the goroutine reads nothing ahead for a number of batches, which
// callers make: who finds none makes those that may stand ready, too, since
// coming here costs him as much as making one. Then it is tried again, and if it
// is still so, for twice as many.
//
// A larger batch is read ahead even so: it is worth having while its caller
// waits for a device. With a small one that is at most some 30 µs a step.
type crowd struct {
	wakes int       // in a row that displaced who woke the goroutine
	most  int       // how many batches were spared the last time
	left  int       // how many are still to be
	stint time.Time // when the callers' present one began
}

// note notes a wake of the goroutine.
func (c *crowd) note(displaced bool) {
	if !displaced {
		*c = crowd{}
		return
	}
	if c.wakes++; c.wakes >= crowded {
		c.most = min(max(2*c.most, leastSpared), mostSpared)
		c.left = c.most
	}
}

// made notes a batch.
func (c *crowd) made() { c.left = max(0, c.left-1) }

// spares says whether the goroutine reads nothing ahead.
func (c *crowd) spares() bool { return c.left > 0 }

// yields says whether a caller who has made batches at this time calls yield.
func (c *crowd) yields(now time.Time) bool {
	over := c.spares() && now.Sub(c.stint) >= longStint
	if over {
		c.stint = now
	}
	return over
}

// yield goes through Go's scheduler once. A caller from outside Go keeps his place
// there (his P) between two calls. Go's watchdog looks after places every 10 ms,
// and takes away one on which nothing was scheduled since; coming back in does not
// count. Where it took one it looks again every 20 µs, 50 times, on a processor
// that callers want: in all that cost a tenth of their time.
func yield() { runtime.Gosched() }
