// Package decoded decodes units of the files of a dataset, and keeps results in memory.
//
// A [Cache] answers one question: give me a field of a unit. The decodings in progress of a
// process take a bounded amount of memory together (budget.go). A result stays in the cache until
// others need its room (memory.go). Units that were announced are decoded in the background
// (ahead.go).
package decoded

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Cache decodes the units of files. It is safe for concurrent use, and implements table.Units.
type Cache struct {
	files *units.Files
	calls *source.Calls
	life  context.Context // ends when calls are closed

	memory memory
	ahead  ahead
	work   work
}

// New returns a cache of the units of files. Life ends when calls are closed.
func New(files *units.Files, calls *source.Calls, life context.Context) *Cache {
	return &Cache{files: files, calls: calls, life: life}
}

// Bytes bounds the decoded buffers that a cache keeps.
const Bytes = 256 << 20

// Encoded implements table.Units.
func (c *Cache) Encoded(file int32) bool { return c.files.List[file].Encoding != "" }

// Any reports whether some file is encoded, so that the cache is used.
func (c *Cache) Any() bool {
	for i := range c.files.List {
		if c.Encoded(int32(i)) {
			return true
		}
	}
	return false
}

// Decode implements table.Units. It decodes one record batch more at a time than there are
// processors, so that none is idle while the first takes longer than the others. If the gather
// that began a decoding is canceled, the decoding goes on, because another gather may wait
// for it. A close of the dataset cancels it.
func (c *Cache) Decode(ctx context.Context, batches []int32, field int, lists bool, use func(i int, decoded *buffers.Decoded) error) error {
	g := gather{Cache: c, batches: batches}
	return g.run(ctx, field, lists, use)
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
	d, err := c.files.File(batch).Decoding(ctx, batch, field)
	d.Memory = min(d.Memory, budgetBytes)
	return d, err
}

// decode runs a decoding, for whose memory the budget has room.
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
	return out, f.Content.Recheck()
}

// Ended returns the error of a gather whose context has ended.
func Ended(err error) error {
	return status.Errorf(status.CodeOf(err), "arrowio", "the gather was ended: %w", err)
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

// Work returns how long threads have decoded.
func (c *Cache) Work() source.Work {
	return source.Work{Running: time.Duration(c.work.running.Load()), Waiting: time.Duration(c.work.waiting.Load())}
}
