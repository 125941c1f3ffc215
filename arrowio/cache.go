package arrowio

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

// cacheBytes bounds the decoded buffers that a decodeCache keeps.
const cacheBytes = 256 << 20

type cacheKey struct {
	batch int32
	field int
	lists bool // without values
}

// decodeCache keeps decoded buffers. If several gathers need the same ones at once, they are decoded
// once. Those that were used longest ago make room for others, unless the gather that decodes the
// others needs them too.
type decodeCache struct {
	mu    sync.Mutex
	byKey map[cacheKey]*list.Element
	order *list.List // of *cacheEntry; the front was used last
	bytes int64
}

type cacheEntry struct {
	key   cacheKey
	ready chan struct{}
	by    *decodings  // began the decoding; nil at its end
	used  atomic.Bool // by a gather, not only decoded ahead
	done  bool        // value may be read; guarded by the cache's lock
	value *buffers.Decoded
	err   error
}

// over reports whether the decoding has ended.
func (e *cacheEntry) over() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// wait waits for the decoding, on behalf of a gather that began to wait before.
func (e *cacheEntry) wait(ctx context.Context, began time.Time) (*buffers.Decoded, error) {
	select {
	case <-e.ready:
		countWait(ctx, time.Since(began), e.value)
		return e.value, e.err
	case <-ctx.Done():
		return nil, gatherEnded(ctx.Err())
	}
}

func gatherEnded(err error) error {
	return status.Errorf(status.CodeOf(err), "arrowio", "the gather was ended: %w", err)
}

// has reports whether the cache has the buffers of a key, or will have them.
func (c *decodeCache) has(key cacheKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key] != nil
}

// find returns the entry of a key, or nil, and counts it as used.
func (c *decodeCache) find(key cacheKey) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheEntry)
}

// fill starts decode in the background, and finishes the entry with its result. An error is
// not kept.
func (c *decodeCache) fill(entry *cacheEntry, decode func() (*buffers.Decoded, error)) {
	guard.Go("arrowio", func() error {
		value, err := decode()
		if err != nil {
			return err
		}
		entry.value = value
		c.finish(entry)
		return nil
	}, func(err error) {
		entry.err = err
		c.finish(entry)
	})
}

// countWait adds the wait for decoded buffers to the times of a gather: to those of the
// storage and of the decompression, in the ratio of their shares in the decoding.
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
func (c *decodeCache) entry(key cacheKey) (entry *cacheEntry, added bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey, c.order = map[cacheKey]*list.Element{}, list.New()
	}
	if e := c.byKey[key]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*cacheEntry), false
	}
	entry = &cacheEntry{key: key, ready: make(chan struct{})}
	c.byKey[key] = c.order.PushFront(entry)
	return entry, true
}

// finish ends the wait for an entry. It drops a failed entry. For a decoded one, it
// drops others until the rest has at most cacheBytes.
func (c *decodeCache) finish(entry *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(entry.ready) // after the changes below, so that waiters see them
	entry.done = true
	if entry.err != nil {
		c.drop(c.byKey[entry.key])
		return
	}
	c.bytes += entry.value.Bytes
	for c.bytes > cacheBytes && c.makeRoom(entry) {
	}
	entry.by = nil
}

// makeRoom drops one entry for another: the least recently used that its gather does not need, else
// the most recently used. So a gather that needs more than the cache keeps finds a fixed part of it
// again. If it dropped the least recently used, each would be dropped just before its next use.
func (c *decodeCache) makeRoom(entry *cacheEntry) bool {
	if by := entry.by; by == nil || !by.tight {
		for e := c.order.Back(); e != nil; e = e.Prev() {
			if old := e.Value.(*cacheEntry); old.done && old != entry && !by.needs(old.key.batch) {
				c.drop(e)
				return true
			}
		}
		if by != nil {
			by.tight = true
		}
	}
	for e := c.order.Front(); e != nil; e = e.Next() {
		if old := e.Value.(*cacheEntry); old.done && old != entry && old.used.Load() {
			c.drop(e)
			return true
		}
	}
	return false
}

// holdsOnly reports whether the cache is full of buffers of the needed record batches, in ascending
// order, so that another one would take the place of one of them.
func (c *decodeCache) holdsOnly(needed []int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes <= cacheBytes-cacheBytes/aheadShare {
		return false
	}
	for e := c.order.Back(); e != nil; e = e.Prev() {
		if _, found := slices.BinarySearch(needed, e.Value.(*cacheEntry).key.batch); !found {
			return false
		}
	}
	return true
}

func (c *decodeCache) drop(e *list.Element) {
	entry := e.Value.(*cacheEntry)
	c.order.Remove(e)
	delete(c.byKey, entry.key)
	if entry.value != nil {
		c.bytes -= entry.value.Bytes
	}
}
