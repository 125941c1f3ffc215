package source

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Patience is how long Close waits for a call that does not heed its context,
// because it reads from a disk that does not answer.
const Patience = time.Second

// Gate lets calls into a source until it is closed, and knows when the last one
// has left: what an implementation needs to keep the promises of Close.
type Gate struct {
	op, what string // of errors, such as "arrowio" and "dataset"
	ctx      context.Context
	cancel   context.CancelFunc
	release  func() error // nil for nothing to release

	mu     sync.Mutex
	inside int
	closed bool
	err    error
	empty  chan struct{} // closed after release
}

// NewGate makes an open gate of what errors of op call it. Release, unless it is
// nil, is called once, when the gate is closed and nobody is inside.
func NewGate(op, what string, release func() error) *Gate {
	g := &Gate{op: op, what: what, release: release, empty: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Enter begins a call. It is InvalidState after Close.
func (g *Gate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return status.Closed(g.op, "the %s is closed", g.what)
	}
	g.inside++
	return nil
}

// Leave ends a call.
func (g *Gate) Leave() {
	g.mu.Lock()
	g.inside--
	last := g.closed && g.inside == 0
	g.mu.Unlock()
	if last {
		g.finish()
	}
}

// finish releases on a goroutine of its own, since that may wait for a disk.
func (g *Gate) finish() {
	if g.release == nil {
		close(g.empty)
		return
	}
	guard.Go(g.op, func() error {
		defer close(g.empty)
		g.err = g.release()
		return nil
	}, func(error) {})
}

// Join gives a context that also ends when the gate is closed. The caller
// must call stop.
func (g *Gate) Join(ctx context.Context) (joined context.Context, stop func()) {
	joined, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(g.ctx, cancel)
	return joined, func() { detach(); cancel() }
}

// Close lets nobody in any more, cancels the joined contexts and waits until
// everybody has left and Release has returned, whose error it gives; for at most
// patience if that is positive. Later calls wait, too, and do nothing else.
func (g *Gate) Close(patience time.Duration) error {
	g.mu.Lock()
	last := !g.closed && g.inside == 0
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	if last {
		g.finish()
	}
	var late <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-g.empty:
		return g.err
	case <-late:
		return nil
	}
}
