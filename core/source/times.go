package source

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Times sums where the time of a gather goes, beside the copying of rows, and lists the records that
// cannot be computed. The zero value is ready for use, and all methods of a nil Times do nothing.
type Times struct {
	storage, decode, maps atomic.Int64

	mu  sync.Mutex
	bad Bad
}

// Bad has the errors of records with rows that cannot be computed, and are zeros.
type Bad map[BadRecord]error

// BadRecord is a record of a view.
type BadRecord struct {
	View   any
	Record int64
}

type timesKey struct{}

// WithTimes returns a context for [Gatherer.Gather]. A gather that waits for storage or
// decompresses data adds its waits to t.
func WithTimes(ctx context.Context, t *Times) context.Context {
	return context.WithValue(ctx, timesKey{}, t)
}

// TimesOf returns the Times of a context, or nil.
func TimesOf(ctx context.Context) *Times {
	t, _ := ctx.Value(timesKey{}).(*Times)
	return t
}

// Work is how long threads decoded, for callers that wait and ahead of them.
type Work struct {
	Running time.Duration // on a processor
	Waiting time.Duration // for a processor
}

// AddStorage adds a wait of the gather for storage.
func (t *Times) AddStorage(d time.Duration) {
	if t != nil {
		t.storage.Add(int64(d))
	}
}

// AddDecode adds a wait of the gather for decompression.
func (t *Times) AddDecode(d time.Duration) {
	if t != nil {
		t.decode.Add(int64(d))
	}
}

// AddMap adds a wait of the gather for functions of the program, or for images to be decoded.
func (t *Times) AddMap(d time.Duration) {
	if t != nil {
		t.maps.Add(int64(d))
	}
}

// AddBad adds a record with rows that cannot be computed. Only its first error counts.
func (t *Times) AddBad(r BadRecord, err error) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bad == nil {
		t.bad = make(Bad)
	}
	if t.bad[r] == nil {
		t.bad[r] = err
	}
}

// TakeBad returns the bad records since the last call, or nil.
func (t *Times) TakeBad() (bad Bad) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	bad, t.bad = t.bad, nil
	return bad
}

// Take returns the sums, and begins new ones.
func (t *Times) Take() (w Waits) {
	if t == nil {
		return w
	}
	return Waits{time.Duration(t.storage.Swap(0)), time.Duration(t.decode.Swap(0)), time.Duration(t.maps.Swap(0))}
}

// Waits are the waits of a gather for storage, for decompression and for functions of the program.
type Waits struct{ Storage, Decode, Map time.Duration }

// Add returns the sums of the waits of two gathers.
func (w Waits) Add(v Waits) Waits {
	return Waits{w.Storage + v.Storage, w.Decode + v.Decode, w.Map + v.Map}
}

// All returns the sum of the waits.
func (w Waits) All() time.Duration { return w.Storage + w.Decode + w.Map }
