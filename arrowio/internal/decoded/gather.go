package decoded

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/status"
)

// Decode implements table.Units. It decodes one record batch more at a time than there are
// processors, so that none is idle while the first takes longer than the others. If the gather
// that began a decoding is canceled, the decoding goes on, because another gather may wait
// for it. A close of the dataset cancels it.
func (c *Cache) Decode(ctx context.Context, batches []int32, field int, lists bool, use func(i int, decoded *buffers.Decoded) error) error {
	g := gather{Cache: c, batches: batches}
	return g.run(ctx, field, lists, use)
}

// gather has the decodings of one gather for one field, in the order of their use.
type gather struct {
	*Cache
	batches []int32  // that the gather needs, in ascending order
	begun   []*begun // by position in batches; nil if another gather decodes
	ahead   bool     // for a later gather

	needed []int32 // a copy of batches, for decodings that end after the gather; set with the first one
	tight  bool    // the memory holds only record batches that the gather needs; guarded by its lock
}

// begun is a decoding that this gather has begun.
type begun struct {
	entry    *entry
	reserved *reservation
}

// run calls use with the decoded buffers of each record batch.
func (g *gather) run(ctx context.Context, field int, lists bool, use func(i int, decoded *buffers.Decoded) error) error {
	batches := g.batches
	g.begun = make([]*begun, len(batches))
	if !lists && g.files.Fetches() {
		g.files.Fetch(units.Wanted{Batches: batches, Fields: []int{field}, Decoded: g.has})
	}
	defer g.end(0)
	keyOf := func(i int) key { return key{batches[i], field, lists} }
	next, most := 0, runtime.GOMAXPROCS(0)+1
	for i := range batches {
		for next = max(next, i); next < min(i+most, len(batches)) && g.begin(ctx, next, keyOf(next)); {
			next++
		}
		decoded, err := g.wait(ctx, i, keyOf(i))
		if err != nil {
			return err
		}
		if err := use(i, decoded); err != nil {
			return err
		}
		g.drop(i)
	}
	return nil
}

// needs reports whether the gather needs a record batch. A nil gather needs none.
func (g *gather) needs(batch int32) bool {
	if g == nil {
		return false
	}
	_, found := slices.BinarySearch(g.needed, batch)
	return found
}

// end ends the reservations of the decodings from a position on, and forgets them.
func (g *gather) end(from int) {
	for i := from; i < len(g.begun); i++ {
		g.drop(i)
	}
}

func (g *gather) drop(i int) {
	if b := g.begun[i]; b != nil {
		b.reserved.end()
		g.begun[i] = nil
	}
}

// begin begins a decoding that the gather will need, if no other gather has begun it. It
// returns false if the budget has no room now.
func (g *gather) begin(ctx context.Context, i int, k key) bool {
	if g.memory.has(k) {
		return true
	}
	d, err := g.decoding(ctx, k.batch, g.files.Fields[k.field])
	if err != nil || !budget.TryAcquire(d.Memory) {
		return false // entry returns the error
	}
	g.add(i, k, d)
	return true
}

// add begins a decoding. The budget has room for it.
func (g *gather) add(i int, k key, d format.Decoding) *entry {
	e, added := g.memory.entry(k)
	if !added {
		budget.Release(d.Memory)
		return e
	}
	if g.needed == nil {
		g.needed = slices.Clone(g.batches)
	}
	e.by = g
	reserved := newReservation(d.Memory)
	g.begun[i] = &begun{e, reserved}
	g.memory.fill(e, func() (*buffers.Decoded, error) {
		defer reserved.end()
		if err := g.calls.Enter(); err != nil {
			return nil, err
		}
		defer g.calls.Leave()
		return g.decode(g.life, k.batch, d, k.lists)
	})
	return e
}

// entry returns the entry of a record batch. If the cache has no entry, it waits for the
// budget and begins the decoding.
func (g *gather) entry(ctx context.Context, i int, k key) (*entry, error) {
	if g.begun[i] != nil {
		return g.begun[i].entry, nil
	}
	if e, _ := g.memory.find(k); e != nil {
		return e, nil
	}
	g.end(i + 1) // before a wait for the budget
	d, err := g.decoding(ctx, k.batch, g.files.Fields[k.field])
	if err != nil {
		return nil, err
	}
	if err := budget.Acquire(ctx, d.Memory); err != nil {
		return nil, status.Ended("arrowio", "the gather", err)
	}
	return g.add(i, k, d), nil
}

// wait returns the decoded buffers of a record batch.
func (g *gather) wait(ctx context.Context, i int, k key) (*buffers.Decoded, error) {
	if e, done := g.memory.find(k); done && g.begun[i] == nil {
		g.mark(e)
		return e.value, nil // at once, in most calls
	}
	for began := time.Now(); ; g.drop(i) {
		e, err := g.entry(ctx, i, k)
		if err != nil {
			return nil, err
		}
		if decoded, err := e.wait(ctx, began); !errors.Is(err, format.ErrEstimate) {
			g.mark(e)
			return decoded, err
		}
	}
}

// mark notes that a gather uses an entry.
func (g *gather) mark(e *entry) {
	if !g.ahead {
		e.used.Store(true)
	}
}
