package loader

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// To wake the goroutine and to be woken by it takes a caller from outside Go
// four or five changes of threads, which cost more than a batch of some hundred
// kilobytes, and far more where no processor is free for them. So where there is
// a shelf, who finds nothing and nobody at work makes the batch himself, on his
// own thread, and leaves to the goroutine what is read ahead, unless that is
// spared (see crowd). Only one of them is ever at it: the goroutine gets no order
// while a caller helps.
//
// A gather in memory ends soon, so that its caller hears of no cancellation, and
// of no Ctrl-C, before it has ended. Where the system has taken the pages of a
// mapped file away, that is as long as the disk takes for one batch.

// mayHelp says whether a caller who finds nothing makes the batch himself.
func (p *prefetch) mayHelp() bool {
	return p.shelf != nil && !p.busy() && p.maker.prompt()
}

// errand gives a caller the order of the batch for which he would wait.
func (p *prefetch) errand() *order {
	p.helping = true
	o := p.place()
	return &o
}

// help fulfils an order, and those that follow from it until the context ends. A
// batch goes to who waits first, as any other does.
func (p *prefetch) help(ctx context.Context, o *order) {
	tired := false
	err := guard.Call("loader", func() error {
		for o != nil {
			a := p.made(*o)
			o, tired = p.helped(o.run, a, ctx.Err() == nil)
		}
		return nil
	})
	if err != nil {
		p.broken(&p.helping, err)
	}
	p.settle()
	if tired {
		yield()
	}
}

// helped ends a help, and says whether callers have made batches for long, or gives
// its next order where it goes on. What came meanwhile has waited for it: a caller
// who found nothing, a jump, close.
func (p *prefetch) helped(run int, a answer, on bool) (next *order, tired bool) {
	p.hold()
	defer p.leave()
	p.helping = false
	p.accept(run, a)
	if on && p.crowd.spares() && p.room() {
		return p.errand(), false
	}
	if !p.wanted() {
		p.pause()
	}
	p.start()
	return nil, p.crowd.yields(time.Now())
}

// small says whether callers make batches as fast as threads wake each other.
func (m *maker) small() bool { return m.plan.loaded <= smallBatch && m.prompt() }

// prompt says whether one thread makes a batch, and waits for nothing.
func (m *maker) prompt() bool {
	g, ok := m.gatherer.(source.Prompt)
	return ok && len(m.shares) == 1 && g.Prompt()
}
