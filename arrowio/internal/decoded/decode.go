package decoded

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/status"
)

// budgetBytes bounds the memory of all decodings in progress in this process: their stored
// bytes and their results, until a gather has used these. One column of a unit may take all of it,
// and then is decoded alone.
const budgetBytes = format.MaxColumn

// A gather waits for the budget only while it holds none of it. So some gather can always
// go on.
var budget = semaphore.NewWeighted(budgetBytes)

// reservation is a part of the budget. A decoding and the gather that began it both end it, and
// then others can have it.
type reservation struct {
	bytes int64
	users atomic.Int32
}

func newReservation(bytes int64) *reservation {
	r := &reservation{bytes: bytes}
	r.users.Store(2)
	return r
}

func (r *reservation) end() {
	if r.users.Add(-1) == 0 {
		budget.Release(r.bytes)
	}
}

// Once decodes a field of a record batch that the cache does not keep.
func (c *Cache) Once(ctx context.Context, batch int32, field units.Field, lists bool) (*buffers.Decoded, error) {
	for {
		d, err := c.decoding(ctx, batch, field)
		if err != nil {
			return nil, err
		}
		if err := budget.Acquire(ctx, d.Memory); err != nil {
			return nil, c.files.Named(batch, err)
		}
		out, err := c.decode(ctx, batch, d, lists)
		budget.Release(d.Memory)
		if !errors.Is(err, format.ErrEstimate) {
			return out, err
		}
	}
}

// decoding returns the decoding of a field of a record batch.
func (c *Cache) decoding(ctx context.Context, batch int32, field units.Field) (format.Decoding, error) {
	d, err := c.files.Decoding(ctx, batch, field)
	d.Memory = min(d.Memory, budgetBytes)
	return d, err
}

// decode runs a decoding. Its memory is reserved.
func (c *Cache) decode(ctx context.Context, batch int32, d format.Decoding, lists bool) (*buffers.Decoded, error) {
	f := c.files.File(batch)
	collect(d.Memory)
	var out *buffers.Decoded
	err := c.work.measure(func() (reading time.Duration, err error) {
		if out, err = d.Run(ctx, lists); err == nil {
			reading = out.Reading
		}
		return reading, err
	})
	switch {
	case errors.Is(err, format.ErrEstimate) && d.Memory < budgetBytes:
		return nil, err
	case errors.Is(err, format.ErrEstimate):
		return nil, f.Named(status.Errorf(status.Internal, "arrowio", "%v, and all memory was reserved for it", err))
	case err != nil:
		return nil, f.Named(err)
	}
	made.Add(out.Bytes)
	return out, f.Content.Recheck()
}

// work sums the times of all decodings.
type work struct{ running, waiting atomic.Int64 }

// measure adds the time of a decoding. The time that it does not run on a processor is a wait for
// one, except while it reads the file.
func (w *work) measure(decode func() (reading time.Duration, err error)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, before := time.Now(), local.ThreadTime()
	reading, err := decode()
	ran := local.ThreadTime() - before
	w.running.Add(int64(ran))
	w.waiting.Add(int64(max(time.Since(began)-reading-ran, 0)))
	return err
}

// maxGarbage bounds the results that are decoded between two garbage collections. It may also be a
// quarter of what the program keeps, if that is more.
const maxGarbage = 256 << 20

// made is the size of the results since the last call of collect that collected garbage.
var made atomic.Int64

// collect collects garbage before bytes are allocated, if with them much would have been decoded
// since the last time. Go itself begins a collection when the heap has doubled, and counts results
// that no gather uses any more as live if they were allocated during the last collection. So such
// results would double the memory of the process.
func collect(bytes int64) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if uint64(made.Load()+bytes) > max(maxGarbage, live[0].Value.Uint64()/4) {
		made.Store(0)
		runtime.GC()
	}
}
