package loader

import "time"

// Stats holds the totals of a loader and its current state. If ConsumerWait grows,
// the loader is slower than its consumer. If ProducerWait grows, the consumer is
// slower, and does not wait for the loader.
type Stats struct {
	Epoch, Step, Position int64 // of the next batch

	Batches int64 // delivered
	Rows    int64 // of them that this process loaded, without padding
	Bytes   int64 // of this process's blocks in them

	// GatheredBytes is how much was gathered or computed for them: the bytes of
	// whole batches with layout.LoadGlobal, else Bytes.
	GatheredBytes int64

	Gather       time.Duration // spent on gathers, for all batches that were built
	ConsumerWait time.Duration // in which callers waited for a batch
	ProducerWait time.Duration // in which enough batches were ready, and none was built

	Queued      int64 // ready batches
	LiveBatches int64 // built and not released, the queued ones included
	LiveBytes   int64
}

// Stats returns the current numbers.
func (l *Loader) Stats() (s Stats) {
	p := l.prefetcher
	p.inspect(func() {
		c := p.counts.now()
		s = Stats{
			Epoch: p.cursor.Epoch, Step: p.cursor.Position / l.grid.batch, Position: p.cursor.Position,
			Batches: c.batches, Rows: c.rows, Bytes: c.bytes, GatheredBytes: c.loaded,
			Gather: time.Duration(p.builder.gathered.Load()), ConsumerWait: c.wait, ProducerWait: c.stall,
			Queued: int64(len(p.ready)),
		}
	})
	s.LiveBatches, s.LiveBytes = p.builder.live()
	return s
}

// counts holds the sums behind Stats.
type counts struct {
	batches, rows, bytes, loaded int64
	wait, stall                  time.Duration // ConsumerWait and ProducerWait
	paused                       time.Time     // when the stall under way began, or zero
}

// deliver counts a batch, and its valid rows.
func (c *counts) deliver(p *plan, valid int64) {
	c.batches++
	c.rows += p.all.below(valid)
	c.bytes += p.bytes
	c.loaded += p.loaded
}

// pause begins a stall: enough batches are ready.
func (c *counts) pause() {
	if c.paused.IsZero() {
		c.paused = time.Now()
	}
}

// resume ends a stall.
func (c *counts) resume() {
	*c = c.now()
	c.paused = time.Time{}
}

// now returns the counts, which include a stall under way.
func (c *counts) now() counts {
	n := *c
	if !n.paused.IsZero() {
		t := time.Now()
		n.stall += t.Sub(n.paused)
		n.paused = t
	}
	return n
}
