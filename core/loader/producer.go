package loader

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// restLimit is how long the producer rests before it ends. Waking a resting
// producer costs a caller less than starting one.
const restLimit = 2 * time.Millisecond

// order is what the producer does next.
type order struct {
	state state

	run     context.Context // producing: of the batch to build
	cursor  batch.Cursor
	sampler sampler.Order

	queue ReadyQueue // resting: where
	taken int64      // for Rest
}

// produce builds batches until none is wanted.
func (p *prefetcher) produce() error {
	for mayRest := true; ; {
		switch o := p.nextOrder(mayRest); o.state {
		case producing:
			if !p.fulfill(o) {
				return nil
			}
			mayRest = true
		case resting:
			mayRest = o.queue.Rest(o.taken, restLimit)
		case closed:
			p.finish()
			return nil
		default:
			return nil
		}
	}
}

// nextOrder sets the state of the producer. It rests if it may and a batch can
// become wanted.
func (p *prefetcher) nextOrder(mayRest bool) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == closed {
		return order{state: closed}
	}
	p.countTaken()
	more := !p.past(p.frontier)
	switch {
	case p.wanted():
		p.state = producing
	case mayRest && more && p.queue != nil:
		p.state = resting
	default:
		p.withdraw() // without a producer, a caller has to come here to start one
		p.state = idle
	}
	p.publish()
	if p.state == producing {
		return p.nextBuild()
	}
	if more {
		p.counts.pause()
	}
	return order{state: p.state, queue: p.queue, taken: p.taken}
}

// nextBuild returns the order for the batch at the frontier.
func (p *prefetcher) nextBuild() order {
	p.counts.resume()
	o := order{state: producing, run: p.run, cursor: p.frontier, sampler: p.sequence.Load().order}
	p.frontier = p.builder.grid.stepAt(p.frontier).After
	return o
}

// fulfill builds a batch. It reports whether the producer continues.
func (p *prefetcher) fulfill(o order) bool {
	p.builder.window.setOrder(o.sampler)
	if !p.accept(o.run, p.builder.build(o.run, o.cursor)) {
		return false
	}
	p.builder.lookAhead()
	return true
}

// accept appends a result, unless the cursor was moved or the prefetcher closed
// since its build began. After an error, no producer runs any more.
func (p *prefetcher) accept(run context.Context, r result) (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if run.Err() != nil {
		r.discard()
		return true
	}
	p.countTaken()
	p.ready = append(p.ready, r)
	if r.err != nil {
		p.state = failed
	}
	p.proceed()
	return r.err == nil
}

// crashed handles a panic of the producer outside a build, which is a bug: a
// caller gets it as an error, in order.
func (p *prefetcher) crashed(err error) {
	if p.failWith(err) {
		p.finish()
	}
}

// failWith appends an error. It reports whether the prefetcher is closed.
func (p *prefetcher) failWith(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == closed {
		return true
	}
	p.countTaken()
	p.ready = append(p.ready, result{err: err})
	p.state = failed
	p.proceed()
	return false
}
