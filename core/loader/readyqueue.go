package loader

import (
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
)

// ReadyQueue holds ready batches for callers outside Go. Such a caller takes a
// batch, or waits for one, without entering Go, which would cost it more than
// the rest of the call.
//
// The queue holds batches only. If it is empty and no batch is expected, the caller
// calls Loader.Next, which also returns errors and the end of a loop.
//
// Callers take batches at any time. The loader calls the methods one at a time,
// except that Rest may run at the same time as any method but Close.
type ReadyQueue interface {
	// Offer appends a batch, with the state after it. The caller that takes
	// the batch owns its memory. Offer reports false if the queue is full.
	Offer(b *batch.Batch, after State) bool

	// Expect sets whether a batch will be offered soon. If not, waiting callers stop
	// waiting.
	Expect(soon bool)

	// Taken returns how many batches callers have taken since the queue was
	// made, and how long they have waited. Batches are taken in order.
	Taken() (batches int64, waited time.Duration)

	// Withdraw removes all batches, and returns the result of Taken.
	Withdraw() (batches int64, waited time.Duration)

	// Rest waits until callers have taken more batches than the given number
	// since the queue was made, or until Wake is called. It reports false if
	// neither happens within the limit. It blocks its thread, so that its
	// goroutine keeps its P.
	Rest(taken int64, limit time.Duration) bool

	// Wake ends the Rest under way. Otherwise it ends the next one at once.
	Wake()

	// Close is called once, when no other method runs.
	Close()
}

// SetReadyQueue has the loader offer its ready batches in a queue, which is
// closed with the loader. It is called at most once. A pass and a remeshed
// loader need queues of their own.
func (l *Loader) SetReadyQueue(q ReadyQueue) {
	p := l.prefetcher
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == closed {
		q.Close()
		return
	}
	p.queue = q
	p.publish()
}

// countTaken counts the batches that callers took from the queue as delivered.
func (p *prefetcher) countTaken() {
	if p.queue != nil {
		p.count(p.queue.Taken())
	}
}

// withdraw empties the queue, so that no caller takes a batch until publish. It
// counts the batches that were taken.
func (p *prefetcher) withdraw() {
	if p.queue != nil {
		p.count(p.queue.Withdraw())
		p.offered = 0
	}
}

// count marks batches as delivered, up to the number taken, and adds the time that
// callers have waited. The arguments are the results of Taken.
func (p *prefetcher) count(taken int64, waited time.Duration) {
	for ; p.taken < taken; p.taken++ {
		r := p.deliver()
		_, _ = r.batch.Take() // its memory is the caller's
		p.offered--
	}
	p.counts.wait += waited - p.waited
	p.waited = waited
}

// publish offers ready batches in the queue, unless the producer is idle: only
// Loader.Next starts it. Then it sets whether callers wait for more.
func (p *prefetcher) publish() {
	if p.queue == nil {
		return
	}
	more := p.state != idle && p.state != closed && p.offer()
	p.queue.Expect(more && p.state == producing)
}

// offer offers the ready batches up to the end of the loop or an error. It
// reports whether the next batch can be offered, too.
func (p *prefetcher) offer() bool {
	c, loop := p.cursor, p.loop
	for i, r := range p.ready {
		if r.err != nil || p.endsBefore(c, loop) {
			return false
		}
		step := r.batch.Step()
		c, loop = step.After, step.Epoch
		if i < p.offered {
			continue
		}
		if !p.queue.Offer(r.batch, p.sequence.Load().at(c)) {
			return false
		}
		p.offered++
	}
	return !p.endsBefore(c, loop)
}

// detach closes the queue.
func (p *prefetcher) detach() {
	p.mu.Lock()
	q := p.queue
	p.queue = nil
	p.mu.Unlock()
	if q != nil {
		q.Close()
	}
}
