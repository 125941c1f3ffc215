package source

import (
	"context"
	"sync/atomic"
	"time"
)

// Times sums where the time of a gather goes, beside the copying of rows. The zero value
// is ready for use, and all methods of a nil Times do nothing.
type Times struct{ storage, decode atomic.Int64 }

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

// Take returns the sums, and begins new ones.
func (t *Times) Take() (storage, decode time.Duration) {
	if t == nil {
		return 0, 0
	}
	return time.Duration(t.storage.Swap(0)), time.Duration(t.decode.Swap(0))
}
