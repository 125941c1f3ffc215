package loader

import (
	"context"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// produce makes batches as long as they are wanted.
func (p *prefetch) produce() error {
	var r rest
	for {
		o, ok := p.order(p.nap != nil && r.short())
		switch {
		case ok:
			r.end()
			p.fulfil(o)
		case o.stay:
			p.nap.Nap(r.nap())
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
		p.running = stay && more
		p.napping = p.running
		return order{stay: p.running}, false
	}
	p.napping = false
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
	stay    bool // there is none yet
}
