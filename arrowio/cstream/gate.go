package cstream

import (
	"sync"

	"github.com/meshfeed/meshfeed/core/status"
)

// gate lets gathers into borrowed memory until it is closed.
type gate struct {
	mu      sync.RWMutex // held for reading by every gather
	closed  bool
	release func() // gives the memory back; may be nil
}

// enter lets one gather in; leave must follow if there is no error.
func (g *gate) enter() error {
	g.mu.RLock()
	if !g.closed {
		return nil
	}
	g.mu.RUnlock()
	return errClosed()
}

func (g *gate) leave() { g.mu.RUnlock() }

// close waits for the last gather and gives the memory back, once. The
// callback runs without the lock, since it may call anything.
func (g *gate) close() {
	g.mu.Lock()
	release := g.release
	g.closed, g.release = true, nil
	g.mu.Unlock()
	if release != nil {
		release()
	}
}

func errClosed() error {
	return status.Closed("arrowio", "the dataset is closed")
}
