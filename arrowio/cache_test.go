package arrowio

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// get returns the buffers of a key, as a gather gets them.
func (c *decodeCache) get(ctx context.Context, key cacheKey, decode func() (*buffers.Decoded, error)) (*buffers.Decoded, error) {
	began := time.Now()
	entry, added := c.entry(key)
	if added {
		c.fill(entry, decode)
	}
	return entry.wait(ctx, began)
}

// TestCacheDecodesOnce: many goroutines ask for a batch that is being decoded.
func TestCacheDecodesOnce(t *testing.T) {
	var c decodeCache
	var made atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	slow := func() (*buffers.Decoded, error) {
		made.Add(1)
		close(begun)
		<-release
		return &buffers.Decoded{Bytes: 1}, nil
	}
	results := make(chan error, 8)
	get := func() error {
		_, err := c.get(context.Background(), cacheKey{1, 2, false}, slow)
		results <- err
		return nil
	}
	guard.Go("test", get, nil)
	<-begun
	for range cap(results) - 1 {
		guard.Go("test", get, nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.get(ctx, cacheKey{1, 2, false}, slow); status.CodeOf(err) != status.Cancelled {
		t.Errorf("a cancelled wait: %v", err)
	}
	close(release)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if made.Load() != 1 {
		t.Errorf("decoded %d times", made.Load())
	}
}

// TestCacheCountsEveryDecode: a gather that decodes has waited, even if the decoding ends
// before the gather looks.
func TestCacheCountsEveryDecode(t *testing.T) {
	var c decodeCache
	var times source.Times
	ctx := source.WithTimes(context.Background(), &times)
	for batch := range int32(20_000) {
		_, err := c.get(ctx, cacheKey{batch, 0, false}, func() (*buffers.Decoded, error) {
			return &buffers.Decoded{Reading: 1}, nil
		})
		if storage, _ := times.Take(); err != nil || storage <= 0 {
			t.Fatalf("decode %d: a wait of %v, %v", batch, storage, err)
		}
	}
}

// TestCacheIsBounded fills the cache beyond its bound, with failures in between.
func TestCacheIsBounded(t *testing.T) {
	var c decodeCache
	get := func(batch int32, bytes int64, err error) (made bool) {
		_, got := c.get(context.Background(), cacheKey{batch, 0, false}, func() (*buffers.Decoded, error) {
			made = true
			return &buffers.Decoded{Bytes: bytes}, err
		})
		if got != err {
			t.Errorf("got %v instead of %v", got, err)
		}
		return made
	}
	failure := errors.New("damaged")
	get(0, cacheBytes/2, nil)
	get(1, cacheBytes/2, nil)
	for range 2 {
		if !get(2, 1, failure) {
			t.Error("a failure was kept")
		}
	}
	if get(0, 0, nil) {
		t.Error("a batch was dropped although there is room")
	}
	get(3, cacheBytes/2, nil) // drops 1, which was used longest ago
	if get(0, 0, nil) || get(3, 0, nil) || !get(1, cacheBytes/2, nil) {
		t.Error("not the batch used longest ago was dropped")
	}
	if c.bytes > cacheBytes || len(c.byKey) != c.order.Len() {
		t.Errorf("%d bytes, %d keys, %d entries", c.bytes, len(c.byKey), c.order.Len())
	}
	get(4, 2*cacheBytes, nil) // larger than all: alone
	if len(c.byKey) != 1 {
		t.Errorf("%d entries beside one that is too large", len(c.byKey)-1)
	}
}
