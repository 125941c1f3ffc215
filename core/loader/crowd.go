package loader

const (
	crowded     = 16        // wakes in a row
	leastSpared = 64        // batches
	mostSpared  = 1024      // batches
	smallBatch  = 256 << 10 // bytes
)

// crowd knows whether more threads want to run than there are processors. There
// reading ahead costs more than it saves if batches are small: who takes one
// wakes the goroutine, has to stop for it where no other processor is free, and
// could have made the batch meanwhile. So where that came about a number of times
// in a row, nothing is read ahead for a number of batches, which callers make.
// Then it is tried again, and if it is still so, for twice as many.
//
// A larger batch is read ahead even so: it is worth having while its caller
// waits for a device. With a small one that is at most some 30 µs a step.
type crowd struct {
	wakes int // in a row that displaced who woke the goroutine
	most  int // how many batches were spared the last time
	left  int // how many are still to be
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

// spares says whether nothing is read ahead.
func (c *crowd) spares() bool { return c.left > 0 }
