package view

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
)

// base is what all views share: a schema, a length, a fingerprint, the count of calls under way,
// and where rows come from.
type base struct {
	kind    string // such as "slice", for errors
	below   []source.Source
	facts   []source.Facts // by dataset below; asked for once, because each view asks those below
	starts  []int64        // by dataset below: its first record; then the number of all records
	schema  source.Schema
	records int64
	calls   *source.Calls
	lists   lists // one for each call under way

	// origins has, for each field, the fields below. renumber appends the numbers that records
	// have in all datasets below, in a draw, to an empty list; nil if they have the same. -1 stays.
	origins  []origin
	renumber func(draw source.Draw, list *[]int64, records []int64)
	drawn    bool                                      // a record stands for another one in every epoch: this is a mixture, or over one
	rows     func(fields []int) (source.Reader, error) // the reader of computed rows; nil: Reader
	length   int64                                     // records in a window: renumber gives a window the number of its first record; 0 without windows

	// identify computes the fingerprint from the fingerprints of the datasets below.
	identify func(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error)
	known    atomic.Pointer[source.Fingerprint]
}

func newBase(kind string, below ...source.Source) base {
	starts, facts, drawn := make([]int64, len(below)+1), make([]source.Facts, len(below)), false
	for i, s := range below {
		starts[i+1], facts[i] = starts[i]+s.Len(), s.Facts()
		drawn = drawn || facts[i].Drawn
	}
	return base{kind: kind, below: below, facts: facts, starts: starts, drawn: drawn, calls: source.NewCalls("view", kind, nil)}
}

// Schema implements source.Source.
func (b *base) Schema() source.Schema { return b.schema }

// Len implements source.Source.
func (b *base) Len() int64 { return b.records }

// Close implements source.Source.
func (b *base) Close() error { return b.calls.Close(source.Patience) }

// Fingerprint implements source.Source. Concurrent first calls may both compute it.
func (b *base) Fingerprint(ctx context.Context) (f source.Fingerprint, err error) {
	err = b.call(ctx, func(ctx context.Context) error {
		if known := b.known.Load(); known != nil {
			f = *known
			return nil
		}
		below, err := b.identitiesBelow(ctx)
		if err != nil {
			return err
		}
		if f, err = b.identify(ctx, below); err == nil {
			b.known.Store(&f)
		}
		return err
	})
	return f, err
}

// identitiesBelow returns the fingerprints of the datasets below.
func (b *base) identitiesBelow(ctx context.Context) (below []source.Fingerprint, err error) {
	below = make([]source.Fingerprint, len(b.below))
	for i, s := range b.below {
		if below[i], err = s.Fingerprint(ctx); err != nil {
			return nil, err
		}
	}
	return below, nil
}

// call calls do with a context that ends when the view is closed.
func (b *base) call(ctx context.Context, do func(ctx context.Context) error) error {
	if err := b.calls.Enter(); err != nil {
		return err
	}
	defer b.calls.Leave()
	ctx, stop := b.calls.Join(ctx)
	defer stop()
	return do(ctx)
}

// gather calls do as call does, if all records and jobs fit the view and the parts of set.
func (b *base) gather(ctx context.Context, set *block.Set, records []int64, jobs []source.Job, do func(ctx context.Context) error) error {
	return b.call(ctx, func(ctx context.Context) error {
		if err := b.checkRecords(records); err != nil {
			return err
		}
		if err := set.Check(len(records), jobs); err != nil {
			return err
		}
		return do(ctx)
	})
}

// checkRecords returns an error if a record is neither in the view nor padding.
func (b *base) checkRecords(records []int64) error {
	n := uint64(b.records)
	for _, r := range records {
		if uint64(r+1) > n { // one comparison for both ends, and for -1
			return b.checkExists(r)
		}
	}
	return nil
}

// checkExists returns an error if a record is not in the view.
func (b *base) checkExists(record int64) error {
	if record >= 0 && record < b.records {
		return nil
	}
	return status.Errorf(status.OutOfRange, "view", "record %d is outside the %d records of the %s", record, b.records, b.kind).With("record", record)
}

// existing appends the records that exist in the view.
func (b *base) existing(list, records []int64) []int64 {
	for _, r := range records {
		if r >= 0 && r < b.records {
			list = append(list, r)
		}
	}
	return list
}

// ended returns the error of a context that has ended.
func ended(ctx context.Context) error {
	return status.Ended("view", "the call", ctx.Err())
}

// hashOf returns a hash that has taken in the kind of a view and the fingerprints
// below.
func hashOf(kind string, below ...source.Fingerprint) hash.Hash {
	h := sha256.New()
	h.Write([]byte("meshfeed " + kind + "\n"))
	for _, f := range below {
		h.Write(f[:])
	}
	return h
}

// hashNumbers adds numbers to a hash. Long lists end early with the context.
func hashNumbers[T int64 | uint64](ctx context.Context, h hash.Hash, numbers ...T) error {
	const chunk = 1 << 13
	text := make([]byte, 0, 8*min(len(numbers), chunk))
	for from := 0; from < len(numbers); from += chunk {
		if err := ended(ctx); err != nil {
			return err
		}
		text = text[:0]
		for _, n := range numbers[from:min(from+chunk, len(numbers))] {
			text = binary.LittleEndian.AppendUint64(text, uint64(n))
		}
		h.Write(text)
	}
	return nil
}

func fingerprint(h hash.Hash) (f source.Fingerprint) {
	copy(f[:], h.Sum(nil))
	return f
}

// lists hands out lists of record numbers, which consecutive gathers reuse.
type lists struct{ pool sync.Pool }

// get returns an empty list, with the capacity that an earlier call needed.
func (l *lists) get() *[]int64 {
	list, ok := l.pool.Get().(*[]int64)
	if !ok {
		list = new([]int64)
	}
	*list = (*list)[:0]
	return list
}

func (l *lists) put(list *[]int64) { l.pool.Put(list) }
