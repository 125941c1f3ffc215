package table

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/core/guard"
	"github.com/meshfeed/meshfeed/core/status"
)

// Gate lets calls into a source until it is closed, and knows when the last
// one has left.
type Gate struct {
	ctx     context.Context
	cancel  context.CancelFunc
	release func() error

	mu     sync.Mutex
	inside int
	closed bool
	err    error
	empty  chan struct{} // closed after release
}

// NewGate makes an open gate. Release is called once, when the gate is closed
// and nobody is inside, by whoever comes last.
func NewGate(release func() error) *Gate {
	g := &Gate{release: release, empty: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Enter begins a call. It is InvalidState after Close.
func (g *Gate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return status.New(status.InvalidState, "arrowio", "the dataset is closed")
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
	guard.Go("arrowio", func() error {
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
// everybody has left, for at most patience if that is positive. Later calls
// wait, too, and do nothing else.
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
