package loader

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// longRest is how long the goroutine rests before it ends.
const longRest = 2 * time.Millisecond

// produce makes batches as long as they are wanted.
func (p *prefetch) produce() error {
	stay := true
	for {
		o, ok := p.order(stay)
		switch {
		case ok:
			p.fulfil(o)
			stay = true
		case o.rest != nil:
			stay = p.rest(o.rest)
		default:
			p.settle()
			return nil
		}
	}
}

// rest lets the goroutine rest until it is woken, and says false where it was
// not.
func (p *prefetch) rest(s Shelf) bool {
	return s.Rest(longRest)
}

// fulfil makes the batch of an order, and announces what comes next.
func (p *prefetch) fulfil(o order) {
	a := p.made(o)
	p.handOver(o.run, a)
	if a.err == nil {
		p.maker.lookAhead()
	}
}

func (p *prefetch) handOver(run int, a answer) {
	p.hold()
	defer p.leave()
	p.accept(run, a)
}

// made gives what becomes of an order.
func (p *prefetch) made(o order) answer {
	p.maker.window.follow(o.sampler)
	b, tally, err := p.maker.makeBatch(o.ctx, o.cursor)
	return answer{b, tally, err}
}

// order says what to make next. Without an order the goroutine ends, unless it
// may stay and there can be one soon.
func (p *prefetch) order(stay bool) (o order, ok bool) {
	p.hold()
	defer p.leave()
	if !p.wanted() {
		p.counts.pause(p.more())
		if stay && p.more() {
			o.rest = p.shelf
		}
		p.running = o.rest != nil
		p.resting = p.running
		return o, false
	}
	p.resting = false
	return p.place(), true
}

// place orders the next batch.
func (p *prefetch) place() order {
	p.counts.resume()
	o := order{ctx: p.ctx, cursor: p.frontier, sampler: p.sequence.Load().order, run: p.run}
	p.frontier = p.maker.grid.place(p.frontier).After
	return o
}

// order is one batch to be made.
type order struct {
	ctx     context.Context
	cursor  batch.Cursor
	sampler sampler.Order
	run     int
	rest    Shelf // there is none yet: where to rest until there is
}
