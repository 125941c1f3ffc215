package loader

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// state is what the producer goroutine of a prefetcher does. README.md beside
// this file draws all transitions.
type state int

const (
	idle      state = iota // no producer: no batch is wanted
	producing              // the producer builds a batch, or is about to
	resting                // the producer waits in the ready queue until a batch is wanted
	failed                 // no producer: the last build failed, and no caller has asked again
	closed                 // calls fail; a producer that still runs calls finish
)

// prefetcher builds batches ahead of their callers and delivers them in order.
// One producer goroutine builds them. It runs only while batches are wanted, so
// an idle loader has no goroutine.
//
// A method that changes the prefetcher does so within change, and one that only
// reads it within inspect.
//
// A loop is the batches that callers get up to the error of loopEnded: one epoch, or
// the rest of it, if Options.Epochs is 0.
type prefetcher struct {
	builder  *builder
	until    int64                    // Options.Epochs
	depth    int                      // how many batches may be ready
	sequence atomic.Pointer[sequence] // changes under mu; reads need no lock
	ended    chan struct{}            // closed after the builder has ended

	mu       sync.Mutex // guards the fields below
	state    state
	run      context.Context // context of the builds since the last move; the next move cancels it
	cancel   context.CancelFunc
	cursor   batch.Cursor // position of the next batch to deliver
	frontier batch.Cursor // position of the next batch to build
	loop     int64        // epoch of the current loop if until is 0, or newLoop
	ready    []result     // in order; an error is always the last
	waiters  []*waiter    // in order of arrival; none if a result is ready
	ledger   ledger
	counts   counts

	queue   ReadyQueue    // nil if all callers are goroutines
	offered int           // how many of the ready results are in the queue
	taken   int64         // batches that callers took from the queue, at the last call of count
	waited  time.Duration // total wait of callers in the queue, at the last call of count
}

// newLoop is the epoch of a loop that has not delivered a batch.
const newLoop = -1

// result is a batch with its evidence and the times that it took, or an error.
type result struct {
	batch         *batch.Batch
	evidence      certificate.Evidence
	gather, build time.Duration
	waits         source.Waits // parts of gather
	firstBad      error        // of the first bad record, or nil
	err           error
}

// waiter is a call of Next that waits for a result.
type waiter struct {
	result chan result // receives once
	since  time.Time
}

// newPrefetcher returns an idle prefetcher. Requested is the cursor that the
// caller asked for, and c the cursor of the first batch.
func newPrefetcher(b *builder, o *Options, q *sequence, requested, c batch.Cursor) *prefetcher {
	p := &prefetcher{
		builder: b, until: int64(o.Epochs), depth: o.prefetch(), ended: make(chan struct{}),
		cursor: c, frontier: c, loop: newLoop,
	}
	p.run, p.cancel = context.WithCancel(context.Background())
	p.ledger.run = b.plan.run
	p.setSequence(q)
	p.ledger.begin(requested, c)
	return p
}

// setSequence sets the records of the batches that are built from now on.
func (p *prefetcher) setSequence(q *sequence) {
	p.sequence.Store(q)
	p.ledger.setSequence(q.certified())
}

// ---- access ----

// inspect calls fn under the lock, after countTaken has counted the batches that
// callers took from the ready queue.
func (p *prefetcher) inspect(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countTaken()
	fn()
}

// change calls fn under the lock while the ready queue is empty, then lets
// callers and the producer proceed. It fails if the prefetcher is closed.
func (p *prefetcher) change(fn func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == closed {
		return closedError()
	}
	p.withdraw()
	defer p.proceed()
	return fn()
}

// proceed follows every change: it serves waiting callers, starts or wakes the
// producer if a batch is wanted, and offers ready batches in the queue.
func (p *prefetcher) proceed() {
	p.serve()
	if p.state == failed && len(p.ready) == 0 && len(p.waiters) > 0 {
		p.state, p.frontier = idle, p.cursor // a caller asks again after the error
	}
	switch {
	case p.state == idle && p.wanted():
		p.state = producing
		guard.Go("loader", p.produce, p.crashed)
	case p.state == resting && p.wanted():
		p.state = producing
		p.queue.Wake()
	}
	p.publish()
}

// wanted reports whether one more batch should be built: for a waiting caller,
// or to be ready.
func (p *prefetcher) wanted() bool {
	if p.past(p.frontier) {
		return false
	}
	urgent := len(p.waiters) > 0 && len(p.ready) == 0
	return urgent || len(p.ready) < p.depth && !p.builder.full()
}

// past reports whether a cursor is after the last epoch.
func (p *prefetcher) past(c batch.Cursor) bool { return p.until > 0 && c.Epoch >= p.until }

// endsBefore reports whether a loop in an epoch ends before the batch at c.
func (p *prefetcher) endsBefore(c batch.Cursor, loop int64) bool {
	if p.until != 0 {
		return p.past(c)
	}
	return loop != newLoop && loop != c.Epoch
}

// ---- callers ----

// next returns the next batch and waits for it if necessary.
func (p *prefetcher) next(ctx context.Context) (*batch.Batch, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, interrupted(ctx)
	}
	w := &waiter{make(chan result, 1), time.Now()}
	err := p.change(func() error {
		p.waiters = append(p.waiters, w)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := p.await(ctx, w)
	return r.batch, r.err
}

// await returns a waiter's result. If the context ends before there is one, the
// result is an error.
func (p *prefetcher) await(ctx context.Context, w *waiter) result {
	select {
	case r := <-w.result:
		return r
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiters, w)
	if i < 0 {
		return <-w.result // served in the meantime
	}
	p.waiters = slices.Delete(p.waiters, i, i+1)
	p.counts.wait += time.Since(w.since)
	return result{err: interrupted(ctx)}
}

// serve passes ready results to waiting callers, in order of their arrival.
func (p *prefetcher) serve() {
	for len(p.waiters) > 0 {
		r, ok := p.take()
		if !ok {
			return
		}
		w := p.waiters[0]
		p.waiters = slices.Delete(p.waiters, 0, 1)
		p.counts.wait += time.Since(w.since)
		w.result <- r
	}
}

// take returns the result for the next caller, if there is one yet. The end of a
// loop is returned once; the caller after that begins the next loop.
func (p *prefetcher) take() (result, bool) {
	if p.endsBefore(p.cursor, p.loop) {
		p.loop = newLoop
		return result{err: loopEnded()}, true
	}
	if len(p.ready) == 0 {
		return result{}, false
	}
	return p.deliver(), true
}

// deliver removes the first ready result and counts it as delivered.
func (p *prefetcher) deliver() result {
	r := p.ready[0]
	p.ready = slices.Delete(p.ready, 0, 1)
	if r.err == nil {
		step := r.batch.Step()
		p.loop, p.cursor = step.Epoch, step.After
		p.ledger.deliver(step, r.evidence)
		p.counts.deliver(p.builder.plan, r, step.Valid)
	}
	return r
}

// ---- moves ----

// beginLoop begins a loop. If the loop before it has no more batches, no caller
// gets its end.
func (p *prefetcher) beginLoop() {
	_ = p.change(func() error {
		p.loop = newLoop
		return nil
	})
}

// move drops the batches that are ready or being built, and continues at c.
func (p *prefetcher) move(c batch.Cursor, loop int64) {
	p.drop()
	p.run, p.cancel = context.WithCancel(context.Background())
	p.cursor, p.frontier, p.loop = c, c, loop
	p.counts.resume()
	if p.state == failed {
		p.state = idle
	}
}

// drop cancels the builds and releases the ready batches.
func (p *prefetcher) drop() {
	p.cancel()
	for _, r := range p.ready {
		r.discard()
	}
	p.ready = nil
}

// discard releases the memory of a result that no caller gets. A panic of the
// allocator is ignored: no call is left that could report it.
func (r result) discard() {
	if r.batch != nil {
		_ = guard.Call("loader", func() error { r.batch.Release(); return nil })
	}
}

// ---- end ----

// closePatience is how long close waits for a gather that ignores its
// context, because the disk does not answer. Such a gather ends by itself when
// the disk answers.
const closePatience = time.Second

// close ends the prefetcher and waits for the producer.
func (p *prefetcher) close() {
	if p.shut() {
		p.finish()
	}
	late := time.NewTimer(closePatience)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
	}
}

// shut fails waiting and later calls. It reports whether the caller has to call
// finish; otherwise the producer does, or another close did.
func (p *prefetcher) shut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.state
	if before == closed {
		return false
	}
	p.withdraw()
	p.state = closed
	p.drop()
	for _, w := range p.waiters {
		w.result <- result{err: fail(status.Cancelled, "the loader was closed while this call waited for a batch")}
	}
	p.waiters = nil
	p.publish()
	if before == resting {
		p.queue.Wake()
	}
	return before == idle || before == failed
}

// finish closes what the prefetcher used. It is called once, when no producer
// runs any more.
func (p *prefetcher) finish() {
	p.detach()
	p.builder.end()
	close(p.ended)
}
