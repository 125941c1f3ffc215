package decoded

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// key is a field of a record batch.
type key struct {
	batch int32
	field int
	lists bool // without values
}

// memory keeps decoded buffers. If several gathers need the same ones at once, they are decoded
// once. Those that were used longest ago make room for others, unless the gather that decodes the
// others needs them too.
type memory struct {
	mu    sync.Mutex
	byKey map[key]*list.Element
	order *list.List // has *entry; the front was used last
	bytes int64
}

// entry holds the buffers of a key, or the decoding that makes them.
type entry struct {
	key   key
	ready chan struct{}
	by    *gather     // began the decoding; nil at its end
	used  atomic.Bool // by a gather, not only decoded ahead
	done  bool        // value may be read; guarded by the cache's lock
	value *buffers.Decoded
	err   error
}

// wait waits for the decoding, on behalf of a gather that began to wait before.
func (e *entry) wait(ctx context.Context, began time.Time) (*buffers.Decoded, error) {
	select {
	case <-e.ready:
		countWait(ctx, time.Since(began), e.value)
		return e.value, e.err
	case <-ctx.Done():
		return nil, status.Ended("arrowio", "the gather", ctx.Err())
	}
}

// has reports whether the cache has the buffers of a key, or will have them.
func (m *memory) has(k key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[k] != nil
}

// find returns the entry of a key, or nil, and counts it as used. Done reports that it has its
// buffers: an entry that failed cannot be found.
func (m *memory) find(k key) (found *entry, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byKey[k]
	if e == nil {
		return nil, false
	}
	m.order.MoveToFront(e)
	found = e.Value.(*entry)
	return found, found.done
}

// fill starts decode in the background, and finishes the entry with its result. An error is
// not kept.
func (m *memory) fill(filled *entry, decode func() (*buffers.Decoded, error)) {
	guard.Go("arrowio", func() error {
		value, err := decode()
		if err != nil {
			return err
		}
		filled.value = value
		m.finish(filled)
		return nil
	}, func(err error) {
		filled.err = err
		m.finish(filled)
	})
}

// countWait adds the wait for decoded buffers to the times of a gather. It divides the wait between
// storage and decompression as the decoding took them.
func countWait(ctx context.Context, waited time.Duration, decoded *buffers.Decoded) {
	t := source.TimesOf(ctx)
	if decoded == nil || t == nil {
		return
	}
	reading := time.Duration(0)
	if all := decoded.Reading + decoded.Unpacking; all > 0 {
		reading = time.Duration(float64(waited) * float64(decoded.Reading) / float64(all))
	}
	t.AddStorage(reading)
	t.AddDecode(waited - reading)
}

// entry returns the entry of a key. Added reports that it is new, so that the caller
// has to decode the buffers.
func (m *memory) entry(k key) (e *entry, added bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey, m.order = map[key]*list.Element{}, list.New()
	}
	if e := m.byKey[k]; e != nil {
		m.order.MoveToFront(e)
		return e.Value.(*entry), false
	}
	e = &entry{key: k, ready: make(chan struct{})}
	m.byKey[k] = m.order.PushFront(e)
	return e, true
}

// finish ends the wait for an entry. It drops a failed entry. For a decoded one, it
// drops others until the rest has at most Bytes.
func (m *memory) finish(filled *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(filled.ready) // after the changes below, so that waiters see them
	filled.done = true
	if filled.err != nil {
		m.drop(m.byKey[filled.key])
		return
	}
	m.bytes += filled.value.Bytes
	for m.bytes > Bytes && m.makeRoom(filled) {
	}
	filled.by = nil
}

// makeRoom drops one entry for another: the least recently used that its gather does not need, else
// the most recently used. So a gather that needs more than the cache keeps finds a fixed part of it
// again. If it dropped the least recently used, each would be dropped just before its next use.
func (m *memory) makeRoom(filled *entry) bool {
	if by := filled.by; by == nil || !by.tight {
		for e := m.order.Back(); e != nil; e = e.Prev() {
			if old := e.Value.(*entry); old.done && old != filled && !by.needs(old.key.batch) {
				m.drop(e)
				return true
			}
		}
		if by != nil {
			by.tight = true
		}
	}
	for e := m.order.Front(); e != nil; e = e.Next() {
		if old := e.Value.(*entry); old.done && old != filled && old.used.Load() {
			m.drop(e)
			return true
		}
	}
	return false
}

// holdsOnly reports whether the cache is full of buffers of the needed record batches, in ascending
// order, so that another one would take the place of one of them.
func (m *memory) holdsOnly(needed []int32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes <= Bytes-Bytes/aheadShare {
		return false
	}
	for e := m.order.Back(); e != nil; e = e.Prev() {
		if _, found := slices.BinarySearch(needed, e.Value.(*entry).key.batch); !found {
			return false
		}
	}
	return true
}

func (m *memory) drop(e *list.Element) {
	old := e.Value.(*entry)
	m.order.Remove(e)
	delete(m.byKey, old.key)
	if old.value != nil {
		m.bytes -= old.value.Bytes
	}
}
