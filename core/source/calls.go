package source

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Patience is how long Close waits for a call that ignores its context, because
// it reads from a disk that does not answer.
const Patience = time.Second

// Calls counts the calls under way in a source, so that Close can cancel them,
// wait for them, and release what they use after the last one.
type Calls struct {
	op, what string       // for errors, such as "arrowio" and "dataset"
	release  func() error // nil if there is nothing to release

	mu     sync.Mutex
	n      int
	joined []*joined
	closed bool
	err    error         // returned by release
	done   chan struct{} // closed after release
}

// NewCalls returns the count of an open source. Its errors have op as their Op, and
// name the source by what it is, such as "dataset". Release, unless it is nil, is
// called once, when the source is closed and no call is under way.
func NewCalls(op, what string, release func() error) *Calls {
	return &Calls{op: op, what: what, release: release, done: make(chan struct{})}
}

// Enter begins a call. The error is InvalidState after Close.
func (c *Calls) Enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return status.Closed(c.op, "the %s is closed", c.what)
	}
	c.n++
	return nil
}

// Leave ends a call.
func (c *Calls) Leave() {
	c.mu.Lock()
	c.n--
	last := c.closed && c.n == 0
	c.mu.Unlock()
	if last {
		c.finish()
	}
}

// finish calls release on a goroutine of its own, since it may wait for a disk.
func (c *Calls) finish() {
	if c.release == nil {
		close(c.done)
		return
	}
	guard.Go(c.op, func() error {
		defer close(c.done)
		c.err = c.release()
		return nil
	}, func(error) {})
}

// joined is a context that Close cancels.
type joined struct {
	cancel context.CancelFunc
	at     int // its index in Calls.joined
}

// Join returns a context that ends with ctx and with the source. The caller must
// call stop, once.
func (c *Calls) Join(ctx context.Context) (of context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	j := &joined{cancel: cancel}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
	}
	j.at, c.joined = len(c.joined), append(c.joined, j)
	return ctx, func() { c.part(j) }
}

// part ends a joined context. The last one of the list takes its place. Every gather pays
// for this, once for each view, and context.AfterFunc costs several times as much.
func (c *Calls) part(j *joined) {
	c.mu.Lock()
	last := len(c.joined) - 1
	c.joined[last].at = j.at
	c.joined[j.at] = c.joined[last]
	c.joined[last] = nil
	c.joined = c.joined[:last]
	c.mu.Unlock()
	j.cancel()
}

// Close refuses later calls and cancels the joined contexts. It waits until all
// calls have ended and release has returned, and returns the error of release. If
// patience is positive, it waits no longer than that. Further calls of Close only
// wait.
func (c *Calls) Close(patience time.Duration) error {
	c.mu.Lock()
	last := !c.closed && c.n == 0
	c.closed = true
	for _, j := range c.joined {
		j.cancel()
	}
	c.mu.Unlock()
	if last {
		c.finish()
	}
	var late <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-c.done:
		return c.err
	case <-late:
		return nil
	}
}
