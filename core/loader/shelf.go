package loader

import (
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
)

// Shelf is where batches that stand ready lie for callers outside Go, who take
// them there without entering Go: to them that costs more than the rest of
// taking a batch. Its methods are called one at a time; a caller may take at any
// time.
//
// Whatever is no batch is not on the shelf: the end of a loop, an error. A caller
// who finds nothing there waits for what is expected, and else calls Next.
type Shelf interface {
	// Offer lays a batch behind those that lie there, with the state after it.
	// Whoever takes it owns its memory. It says false where the shelf is full.
	Offer(b *batch.Batch, after State) bool

	// Expect says whether a batch is offered soon. Where none is, those who wait
	// for one call Next.
	Expect(soon bool)

	// Recall empties the shelf. It gives how many batches were taken since the
	// Recall before, the first ones of those that were offered, and how long
	// callers waited.
	Recall() (taken int, waited time.Duration)

	// Rest passes time until a batch was taken since the last Recall, or Wake
	// was called since the last Rest. It says false if there was none in so long.
	// Go's scheduler must not be told: the goroutine keeps its place.
	Rest(limit time.Duration) (woken bool)

	// Wake ends a rest, from any goroutine.
	Wake()

	// Close is called once, after everything else.
	Close()
}

// Shelve lays what stands ready on a shelf from now on. The loader closes the
// shelf when it is closed itself. A pass and a remeshed loader have none until
// they get their own.
func (l *Loader) Shelve(s Shelf) {
	l.line.hold()
	if l.line.settled || l.line.shelf != nil {
		defer s.Close()
	} else {
		l.line.shelf = s
	}
	l.line.leave()
}

// hold locks the line, and accounts for what was taken from the shelf. Until
// leave nothing lies there.
func (p *prefetch) hold() {
	p.mu.Lock()
	if p.shelf == nil {
		return
	}
	taken, waited := p.shelf.Recall()
	p.counts.wait += waited
	for range taken {
		a := p.deliver()
		_, _ = a.batch.Take() // whoever took it owns the memory
	}
}

// leave lays on the shelf what the next callers get, and unlocks the line. When
// the goroutine has ended, the next caller has to come here to start it.
func (p *prefetch) leave() {
	defer p.mu.Unlock() // a panic of the shelf must not keep the lock
	if p.shelf != nil {
		follows := p.running && p.offer()
		p.shelf.Expect(follows && p.busy())
	}
}

// offer lays batches on the shelf up to the end of the loop, or to an error. It
// says whether the batch after them would lie there too.
func (p *prefetch) offer() bool {
	at, next := p.loop, p.cursor
	for _, a := range p.ready.list[p.ready.head:] {
		if a.err != nil || p.endsBefore(next, at) {
			return false
		}
		place := a.batch.Place()
		at, next = loop{open: true, epoch: place.Epoch}, place.After
		after := p.sequence.Load().state
		after.Epoch, after.Position = next.Epoch, next.Position
		if !p.shelf.Offer(a.batch, after) {
			return false
		}
	}
	return !p.endsBefore(next, at)
}

// putAway closes the shelf.
func (p *prefetch) putAway() {
	p.hold()
	s := p.shelf
	p.shelf = nil
	p.leave()
	if s != nil {
		s.Close()
	}
}
