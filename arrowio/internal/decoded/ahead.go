package decoded

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/internal/guard"
)

const (
	// aheadShare is the part of the cache that the record batches of one announcement
	// may take. A loader announces several steps ahead, so more could drop record
	// batches before their use.
	aheadShare = 8

	// maxAhead bounds the announced fields of record batches that wait for their turn.
	maxAhead = 1 << 16
)

// ahead decodes announced record batches in the background, in the order of the
// announcements. Its goroutines end when nothing is left to decode.
type ahead struct {
	mu      sync.Mutex
	pending []announced
	running int
}

// announced is a field of a record batch that will be needed.
type announced struct {
	batch int32
	field int
	all   []int32       // record batches of the announcement, in ascending order
	left  *atomic.Int64 // bytes of the cache that the announcement may still take
}

// DecodeAhead implements table.Units. If all that is announced takes more than a part of
// the cache, only the first record batches are decoded ahead. If they would take the place of
// others that are announced, no record batch is.
func (c *Cache) DecodeAhead(batches []int32, fields []int) {
	if c.memory.holdsOnly(batches) {
		return
	}
	c.Fetch(batches, fields)
	a, all := &c.ahead, slices.Clone(batches)
	left := new(atomic.Int64)
	left.Store(Bytes / aheadShare)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, batch := range batches {
		for _, field := range fields {
			if number, _ := c.files.File(batch).Column(c.files.Fields[field]); number >= 0 && len(a.pending) < maxAhead {
				a.pending = append(a.pending, announced{batch, field, all, left})
			}
		}
	}
	for a.running < min(len(a.pending), runtime.GOMAXPROCS(0)) {
		a.running++
		guard.Go("arrowio", func() error { c.decodePending(); return nil }, func(error) { a.end() })
	}
}

// decodePending decodes what is pending. An error is left to the gather that needs the
// record batch.
func (c *Cache) decodePending() {
	for {
		next, ok := c.ahead.next()
		if !ok {
			return
		}
		if c.life.Err() != nil || next.left.Load() <= 0 {
			continue
		}
		g := gather{Cache: c, batches: []int32{next.batch}, ahead: true, needed: next.all}
		_ = g.run(c.life, next.field, false, func(_ int, decoded *buffers.Decoded) error {
			next.left.Add(-decoded.Bytes)
			return nil
		})
	}
}

// next removes the first pending field. If no field is pending, it counts the end
// of the calling goroutine.
func (a *ahead) next() (first announced, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending) == 0 {
		a.running--
		return first, false
	}
	first = a.pending[0]
	a.pending = a.pending[1:]
	return first, true
}

// end counts the end of a goroutine by a panic.
func (a *ahead) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
}
