package cstream

import (
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
)

// borrowed is a source over memory of another owner.
type borrowed struct {
	*table.Memory

	mu      sync.Mutex
	release func() // gives the memory back; nil if there is nothing to do any more
}

func newBorrowed(t *table.Table, release func()) *borrowed {
	return &borrowed{Memory: table.NewMemory(t), release: release}
}

// Close implements source.Source. It waits for the last gather, and then gives
// the memory back, once, on this goroutine. It holds no lock meanwhile, since
// the callback may call anything.
func (b *borrowed) Close() error {
	err := b.Memory.Close()
	b.mu.Lock()
	release := b.release
	b.release = nil
	b.mu.Unlock()
	if release != nil {
		release()
	}
	return err
}
