package loader

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// prefetch makes batches ahead of their callers and hands them over in order.
//
// One goroutine makes them, and it exists only while there is something to
// make: it ends when enough batches stand ready, when the run ends, after a
// failure and with the loader, and the next call that makes room starts it
// again. So an idle loader has no goroutine, and nothing ever waits for a
// batch to be released. Where there is a shelf, the goroutine rests there before
// it ends, because waking it costs the caller who makes room less than
// starting it.
type prefetch struct {
	maker *maker
	until int64 // Options.Epochs
	depth int   // batches that may stand ready
	shelf Shelf // nil for none; guarded by mu

	mu       sync.Mutex
	cursor   batch.Cursor // of the next batch to be delivered
	frontier batch.Cursor // of the next batch to be made
	ready    queue        // made, in order; a failure is always the last
	waiting  []chan answer
	loop     loop
	ledger   ledger                   // of what was delivered
	sequence atomic.Pointer[sequence] // read without mu too; changed with it

	running bool // the goroutine is there
	resting bool // it rests, or is about to, and nobody under mu has woken it
	failed  bool // it stopped at a failure; only a call that waits goes on
	run     int  // counts the jumps of the cursor; what an older run made is dropped
	ctx     context.Context
	cancel  context.CancelFunc
	closed  bool
	settled bool          // end was called, or is being called
	idle    chan struct{} // closed after end

	counts counts
}

// answer is what a call of next gets.
type answer struct {
	batch *batch.Batch
	tally certificate.Tally // of its rows
	err   error
}

// loop is the epoch that a loop goes through where Options.Epochs is 0.
type loop struct {
	open  bool
	epoch int64
}

// newPrefetch starts nothing yet. The cursor c is where the grid settled when
// asked was given.
func newPrefetch(m *maker, o *Options, q *sequence, asked, c batch.Cursor) *prefetch {
	p := &prefetch{maker: m, until: int64(o.Epochs), depth: o.prefetch(), cursor: c, frontier: c, idle: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.ledger.run = m.plan.run
	p.follow(q)
	p.ledger.begin(asked, c)
	return p
}

// follow takes the records of batches that are made from now on from another
// sequence.
func (p *prefetch) follow(q *sequence) {
	p.sequence.Store(q)
	p.ledger.follow(q.certified())
}

// next gives the next batch, and waits for it if need be.
func (p *prefetch) next(ctx context.Context) (*batch.Batch, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, interrupted(ctx)
	}
	a, wait := p.ask()
	if wait == nil {
		return a.batch, a.err
	}
	began := time.Now()
	a = p.await(ctx, wait)
	p.waited(time.Since(began))
	return a.batch, a.err
}

// ask gives an answer, or where it will come.
func (p *prefetch) ask() (answer, chan answer) {
	p.hold()
	defer p.leave()
	if p.closed {
		return answer{err: closed()}, nil
	}
	if len(p.waiting) == 0 {
		if a, ok := p.take(); ok {
			p.start()
			return a, nil
		}
	}
	wait := make(chan answer, 1)
	p.waiting = append(p.waiting, wait)
	p.start()
	return answer{}, wait
}

// await gives what comes, or ends with its context, which is not asked for its
// end before it is needed: that may cost a timer.
func (p *prefetch) await(ctx context.Context, wait chan answer) answer {
	select {
	case a := <-wait:
		return a
	default:
	}
	select {
	case a := <-wait:
		return a
	case <-ctx.Done():
		return p.give(wait, answer{err: interrupted(ctx)})
	}
}

// give ends a wait: with what was handed over meanwhile, since it is this
// caller's, else with other.
func (p *prefetch) give(wait chan answer, other answer) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.waiting {
		if w == wait {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return other
		}
	}
	return <-wait
}

// take gives what the next caller gets, if that is known.
func (p *prefetch) take() (answer, bool) {
	if p.loopEnds() {
		return answer{err: ended()}, true
	}
	if p.ready.len() == 0 {
		return answer{}, false
	}
	return p.deliver(), true
}

// deliver takes what stands ready first, and accounts for it.
func (p *prefetch) deliver() answer {
	a := p.ready.pop()
	if a.err == nil {
		place := a.batch.Place()
		p.loop = loop{open: true, epoch: place.Epoch}
		p.cursor = place.After
		p.ledger.deliver(place, a.tally)
		p.counts.deliver(p.maker.plan.all.below(place.Valid), p.maker.plan.bytes, p.maker.plan.loaded)
	}
	return a
}

// loopEnds says whether the next caller's loop is over. Where every loop is
// one epoch, it says so once: the call after that begins the next loop.
func (p *prefetch) loopEnds() bool {
	ends := p.endsBefore(p.cursor, p.loop)
	if ends {
		p.loop = loop{}
	}
	return ends
}

// endsBefore says whether a loop is over before the batch at a cursor.
func (p *prefetch) endsBefore(c batch.Cursor, at loop) bool {
	if p.until != 0 {
		return p.past(c)
	}
	return at.open && at.epoch != c.Epoch
}

// past says whether a cursor lies behind the last epoch.
func (p *prefetch) past(c batch.Cursor) bool { return p.until > 0 && c.Epoch >= p.until }

// begin begins a loop: an epoch that has ended before is not this loop's end.
func (p *prefetch) begin() {
	p.hold()
	defer p.leave()
	p.loop = loop{}
}

// start starts or wakes the goroutine if there is something to make.
func (p *prefetch) start() {
	p.retry()
	switch {
	case !p.wanted():
	case p.resting:
		p.wake()
	case !p.running:
		p.running = true
		guard.Go("loader", p.produce, p.broken)
	}
}

// wake wakes the goroutine if it rests.
func (p *prefetch) wake() {
	if p.resting {
		p.resting = false
		p.shelf.Wake()
	}
}

// wanted says whether one more batch should be made now.
func (p *prefetch) wanted() bool {
	if !p.more() {
		return false
	}
	missing := p.ready.len() == 0 && len(p.waiting) > 0
	return missing || p.room()
}

// room says whether a batch may be made that nobody waits for.
func (p *prefetch) room() bool { return p.more() && p.ready.len() < p.depth && !p.maker.full() }

// more says whether there is a next batch to make.
func (p *prefetch) more() bool { return !p.closed && !p.failed && !p.past(p.frontier) }

// busy says whether the goroutine makes a batch, or is about to.
func (p *prefetch) busy() bool { return p.running && !p.resting }

// accept takes what was made, and hands it to those who wait.
func (p *prefetch) accept(run int, a answer) {
	if run != p.run || p.closed {
		discard(a)
		return
	}
	p.ready.push(a)
	p.failed = a.err != nil
	p.serve()
}

// serve answers those who wait, in the order in which they came.
func (p *prefetch) serve() {
	for len(p.waiting) > 0 {
		a, ok := p.take()
		if !ok {
			break
		}
		p.waiting[0] <- a
		p.waiting = append(p.waiting[:0], p.waiting[1:]...)
	}
	p.retry()
}

// retry makes a failed step the next one again, once its error was delivered
// and somebody waits for more.
func (p *prefetch) retry() {
	if p.failed && p.ready.len() == 0 && len(p.waiting) > 0 {
		p.failed, p.frontier = false, p.cursor
	}
}

// broken is the way out of a panic in produce itself, which would be a bug
// here: those who wait learn of it.
func (p *prefetch) broken(err error) {
	p.hold()
	defer p.leave()
	p.failed = true
	p.ready.push(answer{err: err})
	p.serve()
	p.running = false
	p.start()
}

// jump moves the cursor, and keeps account of it.
func (p *prefetch) jump(c batch.Cursor, account func(*ledger, batch.Cursor)) error {
	p.hold()
	defer p.leave()
	if p.closed {
		return closed()
	}
	account(&p.ledger, c)
	p.move(c, loop{})
	return nil
}

// jumpTo moves the cursor to a place in a sequence, where the grid settled when
// asked was given.
func (p *prefetch) jumpTo(asked, c batch.Cursor, q *sequence) error {
	if p.closed {
		return closed()
	}
	p.follow(q)
	p.ledger.begin(asked, c)
	p.move(c, loop{})
	return nil
}

// skip leaves out n steps. A loop that goes on ends where its epoch does, as if
// they had been delivered.
func (p *prefetch) skip(n int64) error {
	p.hold()
	defer p.leave()
	if p.closed {
		return closed()
	}
	s, err := p.maker.grid.skip(p.cursor, n, p.until)
	if err != nil || n == 0 {
		return err
	}
	p.ledger.skip(s)
	p.move(s.to, p.loop)
	return nil
}

// move moves the cursor, and says which loop goes on. What stood ready is
// dropped.
func (p *prefetch) move(c batch.Cursor, at loop) {
	p.reset()
	p.cursor, p.frontier = c, c
	p.loop, p.failed = at, false
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.serve()
	p.start()
}

// reset ends the run that goes on.
func (p *prefetch) reset() {
	p.run++
	p.cancel()
	for p.ready.len() > 0 {
		discard(p.ready.pop())
	}
}

// patience is how long close waits for a gather that does not heed its
// context, because it reads from a disk that does not answer. It ends by
// itself when the disk does.
const patience = time.Second

// close ends everything and waits for it.
func (p *prefetch) close() {
	p.shut()
	p.settle()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.idle:
	case <-late.C:
	}
}

// shut refuses later calls and ends those under way.
func (p *prefetch) shut() {
	p.hold()
	defer p.leave()
	if p.closed {
		return
	}
	p.closed = true
	p.wake()
	p.reset()
	for _, w := range p.waiting {
		w <- answer{err: fail(status.Cancelled, "the loader was closed while this call waited for a batch")}
	}
	p.waiting = nil
}

// settle calls end if the loader is closed and nobody makes a batch any more:
// whichever of close and the goroutine is the last does it, outside the lock.
func (p *prefetch) settle() {
	if !p.last() {
		return
	}
	p.putAway()
	p.maker.end()
	close(p.idle)
}

func (p *prefetch) last() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.closed && !p.running && !p.settled
	p.settled = p.settled || last
	return last
}
