package loader

import (
	"context"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// maxNaps is how often the goroutine naps in a row: a loop whose steps are
// longer than that does not feel what starting a goroutine costs.
const maxNaps = 40

// produce makes batches as long as they are wanted.
func (p *prefetch) produce() error {
	for naps := 0; ; naps++ {
		o, ok := p.order(p.nap != nil && naps < maxNaps)
		switch {
		case ok:
			p.fulfil(o)
			naps = -1
		case o.stay:
			p.nap()
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted() {
		more := !p.closed && !p.failed && !p.past(p.frontier)
		p.counts.pause(more)
		p.running = stay && more
		return order{stay: p.running}, false
	}
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
