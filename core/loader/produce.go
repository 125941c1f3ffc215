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
			stay = o.rest.Rest(longRest)
		default:
			p.settle()
			return nil
		}
	}
}

// fulfil makes the batch of an order.
func (p *prefetch) fulfil(o order) {
	p.maker.window.follow(o.sampler)
	b, tally, err := p.maker.makeBatch(o.ctx, o.cursor)
	p.accept(o.run, answer{b, tally, err})
	if err == nil {
		p.maker.lookAhead()
	}
}

// order says what to make next. Without an order the goroutine ends, unless it
// may stay and there can be one soon.
func (p *prefetch) order(stay bool) (o order, ok bool) {
	p.hold()
	defer p.leave()
	if !p.wanted() {
		more := !p.closed && !p.failed && !p.past(p.frontier)
		p.counts.pause(more)
		if stay && more {
			o.rest = p.shelf
		}
		p.running = o.rest != nil
		p.resting = p.running
		return o, false
	}
	p.resting = false
	p.counts.resume()
	o = order{ctx: p.ctx, cursor: p.frontier, sampler: p.sequence.Load().order, run: p.run}
	p.frontier = p.maker.grid.place(p.frontier).After
	return o, true
}

// order is one batch to be made.
type order struct {
	ctx     context.Context
	cursor  batch.Cursor
	sampler sampler.Order
	run     int
	rest    Shelf // there is none yet: where to rest until there is
}
