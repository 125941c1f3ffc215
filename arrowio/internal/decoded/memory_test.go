package decoded

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// get returns the buffers of a key, as a gather gets them.
func (m *memory) get(ctx context.Context, k key, decode func() (*buffers.Decoded, error)) (*buffers.Decoded, error) {
	began := time.Now()
	e, added := m.entry(k)
	if added {
		m.fill(e, decode)
	}
	return e.wait(ctx, began)
}

// TestMemoryDecodesOnce: many goroutines ask for a batch that is being decoded.
func TestMemoryDecodesOnce(t *testing.T) {
	var m memory
	var computed atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	slow := func() (*buffers.Decoded, error) {
		computed.Add(1)
		close(begun)
		<-release
		return &buffers.Decoded{Bytes: 1}, nil
	}
	results := make(chan error, 8)
	get := func() error {
		_, err := m.get(context.Background(), key{1, 2, false}, slow)
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
	if _, err := m.get(ctx, key{1, 2, false}, slow); status.CodeOf(err) != status.Cancelled {
		t.Errorf("a cancelled wait: %v", err)
	}
	close(release)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if computed.Load() != 1 {
		t.Errorf("decoded %d times", computed.Load())
	}
}

// TestMemoryCountsEveryDecode: a gather that decodes has waited, even if the decoding ends
// before the gather looks.
func TestMemoryCountsEveryDecode(t *testing.T) {
	var m memory
	var times source.Times
	ctx := source.WithTimes(context.Background(), &times)
	for batch := range int32(20_000) {
		_, err := m.get(ctx, key{batch, 0, false}, func() (*buffers.Decoded, error) {
			return &buffers.Decoded{Reading: 1}, nil
		})
		w := times.Take()
		if err != nil || w.Storage <= 0 {
			t.Fatalf("decode %d: a wait of %v, %v", batch, w.Storage, err)
		}
	}
}

// TestMemoryHidesFailures: a gather that looks for buffers while their decoding fails finds the
// decoding or nothing, and so can begin it again.
func TestMemoryHidesFailures(t *testing.T) {
	var m memory
	for batch := range int32(20_000) {
		k := key{batch, 0, false}
		found, _ := m.entry(k)
		m.fill(found, func() (*buffers.Decoded, error) { return nil, format.ErrEstimate })
		for done := false; found != nil; runtime.Gosched() {
			if found, done = m.find(k); done {
				t.Fatalf("decode %d: found with the error %v", batch, found.err)
			}
		}
	}
}

// TestMemoryIsBounded fills the cache beyond its bound, with failures in between.
func TestMemoryIsBounded(t *testing.T) {
	var m memory
	get := func(batch int32, bytes int64, err error) (computed bool) {
		_, got := m.get(context.Background(), key{batch, 0, false}, func() (*buffers.Decoded, error) {
			computed = true
			return &buffers.Decoded{Bytes: bytes}, err
		})
		if got != err {
			t.Errorf("got %v instead of %v", got, err)
		}
		return computed
	}
	failure := errors.New("damaged")
	get(0, Bytes/2, nil)
	get(1, Bytes/2, nil)
	for range 2 {
		if !get(2, 1, failure) {
			t.Error("a failure was kept")
		}
	}
	if get(0, 0, nil) {
		t.Error("a batch was dropped although there is room")
	}
	get(3, Bytes/2, nil) // drops 1, which was used longest ago
	if get(0, 0, nil) || get(3, 0, nil) || !get(1, Bytes/2, nil) {
		t.Error("not the batch used longest ago was dropped")
	}
	if m.bytes > Bytes || len(m.byKey) != m.order.Len() {
		t.Errorf("%d bytes, %d keys, %d entries", m.bytes, len(m.byKey), m.order.Len())
	}
	get(4, 2*Bytes, nil) // larger than all: alone
	if len(m.byKey) != 1 {
		t.Errorf("%d entries beside one that is too large", len(m.byKey)-1)
	}
}
