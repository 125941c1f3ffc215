package loader

import (
	"fmt"
	"runtime"
	"time"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
)

// Stats holds the totals of a loader and its current state. If ConsumerWait grows,
// the loader is slower than its consumer. If ProducerWait grows, the consumer is
// slower, and does not wait for the loader.
type Stats struct {
	Epoch, Step, Position int64 // position of the next batch

	Batches int64 // delivered
	Rows    int64 // rows of them that this process loaded, without padding
	Bytes   int64 // bytes of this process's blocks in them

	// GatheredBytes is how much was gathered or computed for them: the bytes of
	// whole batches with layout.LoadGlobal, else Bytes.
	GatheredBytes int64

	// Build is how long the producer built them, from the list of records to the
	// finished batch. It builds one batch at a time, however many workers gather it. So
	// callers that never pause get up to Rows / Build rows per second. Passing a batch
	// to its caller takes some microseconds more. While callers pause, the system may
	// read files ahead, and later batches take less time than without pauses.
	Build        time.Duration
	Gather       time.Duration  // the part of Build spent gathering rows
	Storage      time.Duration  // the part of Gather spent waiting for storage
	Decode       time.Duration  // the part of Gather spent waiting for decompression
	Map          time.Duration  // the part of Gather spent in functions of views: see view.Map
	Decoding     source.Work    // work of the source, for these batches and later ones, and for other loaders over it
	Fetched      source.Fetched // from other machines, as Decoding counts
	ConsumerWait time.Duration  // callers waited for a batch
	ProducerWait time.Duration  // enough batches were ready, and none was built

	// Bad counts records with rows of zeros, because a view with Zero set cannot compute them. A record
	// counts once in each batch, and in each process that needs it. FirstBad is the error of the first one.
	Bad      int64
	FirstBad error

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
			Build: c.build, Gather: c.gather, Storage: c.waits.Storage, Decode: c.waits.Decode, Map: c.waits.Map, ConsumerWait: c.wait, ProducerWait: c.stall,
			Bad: c.bad, FirstBad: c.firstBad, Queued: int64(len(p.ready)),
		}
	})
	s.Decoding, s.Fetched = source.DecodingOf(l.src), source.FetchedOf(l.src)
	s.LiveBatches, s.LiveBytes = p.builder.live()
	return s
}

// Measured returns what a loop measured in some wall time: the changes since earlier Stats.
// [diagnosis.Diagnose] finds what limits the loop. The first batches should not be among
// them.
func (l *Loader) Measured(since Stats, wall time.Duration) diagnosis.Measurements {
	now, prefetch := l.Stats(), int64(l.Prefetch())
	return diagnosis.Measurements{
		Process: l.Process(), Batches: now.Batches - since.Batches,
		Wall: wall, Wait: now.ConsumerWait - since.ConsumerWait, Stall: now.ProducerWait - since.ProducerWait,
		Build: now.Build - since.Build, Gather: now.Gather - since.Gather, Storage: now.Storage - since.Storage, Decode: now.Decode - since.Decode, Map: now.Map - since.Map,
		Decoding: now.Decoding.Running - since.Decoding.Running, Delayed: now.Decoding.Waiting - since.Decoding.Waiting, Processors: runtime.GOMAXPROCS(0),
		Rows: now.Rows - since.Rows, Bytes: now.Bytes - since.Bytes, Gathered: now.GatheredBytes - since.GatheredBytes,
		Arrays: len(l.o.Layout.Arrays()), Combinable: l.Combinable(), BatchSize: l.grid.batch, Records: l.src.Len(), Prefetch: prefetch,
		Bounded: l.o.MaxHostBytes > 0 && l.o.MaxHostBytes < (prefetch+1)*l.plan.need(),
		Windows: l.Windows(),
	}
}

// Windows returns how well the order of the records shuffles batches, and what that costs.
// It is zero for an order without windows.
func (l *Loader) Windows() sampler.Quality {
	w, ok := sampler.WindowsOf(l.prefetcher.sequence.Load().order)
	if !ok {
		return sampler.Quality{}
	}
	return w.Quality(l.grid.batch, l.o.Layout.RecordBytes())
}

// Combinable returns how many arrays fewer there were if the files had fields of equal type, shape
// and partition as one. Fields that no file has are not among them.
func (l *Loader) Combinable() (n int) {
	seen, schema := map[string]bool{}, l.src.Schema()
	for _, a := range l.o.Layout.Arrays() {
		_, f, ok := schema.Field(a.Field)
		if a.Kind != layout.Data || !ok || f.Computed || a.Columns != nil {
			continue
		}
		kind := fmt.Sprint(f.Type, f.Logical, f.Names, a.Shape, a.Sharding.Spec())
		if seen[kind] {
			n++
		}
		seen[kind] = true
	}
	return n
}

// counts holds the sums behind Stats.
type counts struct {
	batches, rows, bytes, loaded int64
	bad                          int64
	firstBad                     error
	build, gather                time.Duration
	waits                        source.Waits  // parts of gather
	wait, stall                  time.Duration // ConsumerWait and ProducerWait
	paused                       time.Time     // when the stall under way began, or zero
}

// deliver counts a batch, and its valid rows.
func (c *counts) deliver(p *plan, r result, valid int64) {
	c.batches++
	c.bad += r.batch.Step().Bad
	if c.firstBad == nil {
		c.firstBad = r.firstBad
	}
	c.rows += p.all.below(valid)
	c.bytes += p.bytes
	c.loaded += p.loaded
	c.build += r.build
	c.gather += r.gather
	c.waits = c.waits.Add(r.waits)
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
