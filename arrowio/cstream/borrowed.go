package cstream

import (
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
)

// borrowed is a source over memory that belongs to the caller or to another library.
type borrowed struct {
	*table.Memory

	mu      sync.Mutex
	release func() // returns the memory to its owner; nil after that
}

func newBorrowed(t *table.Table, release func()) *borrowed {
	return &borrowed{Memory: table.NewMemory(t), release: release}
}

// Close implements source.Source. It waits for the last gather, and then calls
// release once, on this goroutine. It holds no lock during the call, because the
// callback may call any function, also Close.
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
