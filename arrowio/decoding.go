package arrowio

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
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
	s := &reservation{bytes: bytes}
	s.users.Store(2)
	return s
}

func (s *reservation) end() {
	if s.users.Add(-1) == 0 {
		budget.Release(s.bytes)
	}
}

// Decode implements table.Store. It decodes one record batch more at a time than there are
// processors, so that none is idle while the first takes longer than the others. If the gather
// that began a decoding is canceled, the decoding goes on, because another gather may wait
// for it. A close of the dataset cancels it.
func (s *store) Decode(ctx context.Context, batches []int32, field int, lists bool, use func(i int, decoded *buffers.Decoded) error) error {
	d := decodings{store: s, batches: batches}
	return d.run(ctx, field, lists, use)
}

// run is Decode.
func (d *decodings) run(ctx context.Context, field int, lists bool, use func(i int, decoded *buffers.Decoded) error) error {
	batches := d.batches
	d.begun = make([]*begun, len(batches))
	defer d.end(0)
	key := func(i int) cacheKey { return cacheKey{batches[i], field, lists} }
	next, most := 0, runtime.GOMAXPROCS(0)+1
	for i := range batches {
		for next = max(next, i); next < min(i+most, len(batches)) && d.begin(ctx, next, key(next)); {
			next++
		}
		decoded, err := d.wait(ctx, i, key(i))
		if err != nil {
			return err
		}
		if err := use(i, decoded); err != nil {
			return err
		}
		d.drop(i)
	}
	return nil
}

// decodings are those of one gather for one field, in the order in which it needs them.
type decodings struct {
	*store
	batches []int32  // that the gather needs, in ascending order
	begun   []*begun // by position in batches; nil if another gather decodes
	ahead   bool     // for a later gather

	needed []int32 // a copy of batches, for decodings that end after the gather; set with the first one
	tight  bool    // the cache holds only record batches that the gather needs; guarded by its lock
}

// needs reports whether the gather needs a record batch. A nil gather needs none.
func (d *decodings) needs(batch int32) bool {
	if d == nil {
		return false
	}
	_, found := slices.BinarySearch(d.needed, batch)
	return found
}

// begun is a decoding that this gather has begun.
type begun struct {
	entry *cacheEntry
	share *reservation
}

// end ends the shares of the decodings from a position on, and forgets them.
func (d *decodings) end(from int) {
	for i := from; i < len(d.begun); i++ {
		d.drop(i)
	}
}

func (d *decodings) drop(i int) {
	if b := d.begun[i]; b != nil {
		b.share.end()
		d.begun[i] = nil
	}
}

// begin begins a decoding that the gather will need, if no other gather has begun it. It
// returns false if the budget has no room now.
func (d *decodings) begin(ctx context.Context, i int, key cacheKey) bool {
	if d.cache.has(key) {
		return true
	}
	decoding, err := d.decoding(ctx, key)
	if err != nil || !budget.TryAcquire(decoding.Memory) {
		return false // entry returns the error
	}
	d.add(i, key, decoding)
	return true
}

// add begins a decoding for which the budget has room.
func (d *decodings) add(i int, key cacheKey, decoding format.Decoding) *cacheEntry {
	entry, added := d.cache.entry(key)
	if !added {
		budget.Release(decoding.Memory)
		return entry
	}
	if d.needed == nil {
		d.needed = slices.Clone(d.batches)
	}
	entry.by = d
	share := newReservation(decoding.Memory)
	d.begun[i] = &begun{entry, share}
	d.cache.fill(entry, func() (*buffers.Decoded, error) {
		defer share.end()
		return d.decode(key, decoding)
	})
	return entry
}

// entry returns the entry of a record batch. If there is none, it begins the decoding, and
// may wait for the budget before.
func (d *decodings) entry(ctx context.Context, i int, key cacheKey) (*cacheEntry, error) {
	if d.begun[i] != nil {
		return d.begun[i].entry, nil
	}
	if entry := d.cache.find(key); entry != nil {
		return entry, nil
	}
	d.end(i + 1) // before a wait for the budget
	decoding, err := d.decoding(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := budget.Acquire(ctx, decoding.Memory); err != nil {
		return nil, gatherEnded(err)
	}
	return d.add(i, key, decoding), nil
}

// wait returns the decoded buffers of a record batch.
func (d *decodings) wait(ctx context.Context, i int, key cacheKey) (*buffers.Decoded, error) {
	if entry := d.cache.find(key); entry != nil && d.begun[i] == nil && entry.over() {
		d.mark(entry)
		return entry.value, entry.err // at once, in most calls
	}
	for began := time.Now(); ; d.drop(i) {
		entry, err := d.entry(ctx, i, key)
		if err != nil {
			return nil, err
		}
		if decoded, err := entry.wait(ctx, began); !errors.Is(err, format.ErrEstimate) {
			d.mark(entry)
			return decoded, err
		}
	}
}

// mark notes that a gather uses an entry.
func (d *decodings) mark(entry *cacheEntry) {
	if !d.ahead {
		entry.used.Store(true)
	}
}

// decoding returns the decoding of a field of one record batch.
func (s *store) decoding(ctx context.Context, key cacheKey) (format.Decoding, error) {
	return (*Dataset)(s).decodingOf(ctx, key.batch, s.table.Fields[key.field], s.columns[key.field])
}

// decode runs a decoding, for whose memory the budget has room.
func (s *store) decode(key cacheKey, decoding format.Decoding) (*buffers.Decoded, error) {
	if err := s.table.Calls.Enter(); err != nil {
		return nil, err
	}
	defer s.table.Calls.Leave()
	return (*Dataset)(s).decode(s.life, key.batch, decoding, key.lists)
}

// decodingOf returns the decoding of a field of one record batch, as its file stores the field.
func (d *Dataset) decodingOf(ctx context.Context, batch int32, field *arrowtype.Field, column int) (format.Decoding, error) {
	f := (*store)(d).of(batch)
	number, field := f.columnOf(column, field)
	decoding, err := f.contents.Decoding(ctx, int(batch)-f.first, number, field)
	decoding.Memory = min(decoding.Memory, budgetBytes)
	return decoding, f.named(err)
}

// decode runs a decoding, for whose memory the budget has room.
func (d *Dataset) decode(ctx context.Context, batch int32, decoding format.Decoding, lists bool) (*buffers.Decoded, error) {
	f := (*store)(d).of(batch)
	collect(decoding.Memory)
	var out *buffers.Decoded
	err := d.decoded.measure(func() (reading time.Duration, err error) {
		if out, err = decoding.Run(ctx, lists); err == nil {
			reading = out.Reading
		}
		return reading, err
	})
	switch {
	case errors.Is(err, format.ErrEstimate) && decoding.Memory < budgetBytes:
		return nil, err
	case err != nil:
		return nil, f.named(err)
	}
	return out, f.content.Recheck()
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

// decoding returns how long threads have decoded.
func (d *Dataset) decoding() source.Work {
	return source.Work{Running: time.Duration(d.decoded.running.Load()), Waiting: time.Duration(d.decoded.waiting.Load())}
}

// decodeOnce decodes a field of one record batch, which the cache in memory does not keep.
func (d *Dataset) decodeOnce(ctx context.Context, batch int32, field *arrowtype.Field, column int, lists bool) (*buffers.Decoded, error) {
	for {
		decoding, err := d.decodingOf(ctx, batch, field, column)
		if err != nil {
			return nil, err
		}
		if err := budget.Acquire(ctx, decoding.Memory); err != nil {
			return nil, (*store)(d).Named(batch, err)
		}
		out, err := d.decode(ctx, batch, decoding, lists)
		budget.Release(decoding.Memory)
		if !errors.Is(err, format.ErrEstimate) {
			return out, err
		}
	}
}
