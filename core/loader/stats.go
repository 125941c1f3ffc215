package loader

import "time"

// Stats says what a loader did so far and holds now. The waits tell which side
// is the slower: where ConsumerWait grows, the loader is; where ProducerWait
// grows, the consumer is, and the loader costs nothing.
type Stats struct {
	Epoch, Step, Position int64 // of the next batch

	Batches int64 // delivered
	Rows    int64 // that this process loaded for them, without padding
	Bytes   int64 // of this process's blocks in them

	// GatheredBytes is what was gathered or made for them: Bytes, but with
	// layout.LoadGlobal the bytes of whole batches.
	GatheredBytes int64

	Gather       time.Duration // spent gathering, for all batches that were made
	ConsumerWait time.Duration // calls of Next waited for a batch
	ProducerWait time.Duration // enough batches stood ready, and nothing was made

	Queued      int64 // batches that stand ready
	LiveBatches int64 // made and not released, the queued ones included
	LiveBytes   int64
}

// Stats gives the numbers of now.
func (l *Loader) Stats() Stats {
	l.line.hold()
	c, at, queued := l.line.counts.now(), l.line.cursor, l.line.ready.len()
	l.line.leave()
	batches, bytes := l.maker.live()
	return Stats{
		Epoch: at.Epoch, Step: at.Position / l.grid.batch, Position: at.Position,
		Batches: c.batches, Rows: c.rows, Bytes: c.bytes, GatheredBytes: c.loaded,
		Gather: time.Duration(l.maker.gathered.Load()), ConsumerWait: c.wait, ProducerWait: c.stall,
		Queued: int64(queued), LiveBatches: batches, LiveBytes: bytes,
	}
}

// counts are the sums behind Stats.
type counts struct {
	batches, rows, bytes, loaded int64
	wait, stall                  time.Duration
	paused                       time.Time // since when enough stands ready; zero if not
}

func (c *counts) deliver(rows, bytes, loaded int64) {
	c.batches++
	c.rows += rows
	c.bytes += bytes
	c.loaded += loaded
}

// pause notes that nothing is made from now on, for want of a consumer or not.
func (c *counts) pause(enough bool) {
	if enough && c.paused.IsZero() {
		c.paused = time.Now()
	}
}

// resume notes that something is made again.
func (c *counts) resume() {
	*c = c.now()
	c.paused = time.Time{}
}

// now gives the counts with a pause that goes on counted in.
func (c *counts) now() counts {
	n := *c
	if !n.paused.IsZero() {
		t := time.Now()
		n.stall += t.Sub(n.paused)
		n.paused = t
	}
	return n
}

// waited adds what a caller waited.
func (p *prefetch) waited(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.wait += d
}
