// Package loader delivers the batches of one process of a device mesh: rows in
// the epoch's order, gathered shard by shard, read ahead, resumable anywhere.
//
// A [Loader] composes what the packages below it know. The layout says which
// blocks the process holds and which rows of the global batch they need, the
// sampler which records stand at those rows, the source copies them, and an
// allocator provides the memory:
//
//	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true})
//	defer l.Close()
//	for b, err := range l.All(ctx) {
//		if err != nil { … }
//		… b.Bytes(0) …
//		b.Release()
//	}
//
// Every process runs a loader of its own, on the same layout, dataset, order
// and seed. They never talk to each other: all of them compute the same
// sequence of global batches, and each gathers its part. So [Options.Process]
// can play any process, and a test can play all of them.
//
// [Loader.State] names the next batch that was not delivered yet. A run
// continues from it on any mesh, number of processes, batch size and
// remainder.
//
// README.md beside this file follows one record on its way, and says who owns
// what when.
package loader

import (
	"context"
	"reflect"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Loader delivers batches. It has one cursor. All methods are safe for
// concurrent use; of concurrent calls of Next, each batch goes to one.
type Loader struct {
	src   source.Source
	o     Options
	plan  *plan
	grid  grid
	first *sequence // line has that of now
	count *batch.Count
	maker *maker
	line  *prefetch
}

// New checks everything that can be checked before a row is read, and gives a
// loader whose cursor is at the start, or at Options.State. If several things
// are wrong, the error names all of them. Nothing is gathered before the first
// call that wants a batch.
//
// The source stays the caller's, who closes it after the loader.
func New(src source.Source, o Options) (*Loader, error) {
	return NewContext(context.Background(), src, o)
}

// NewContext is New with a context that ends the wait for what has to be read
// from disk: the dataset's fingerprint, and the lengths of lists that no
// metadata tell.
func NewContext(ctx context.Context, src source.Source, o Options) (*Loader, error) {
	return making(func() (*Loader, error) { return newLoader(ctx, src, o) })
}

func newLoader(ctx context.Context, src source.Source, o Options) (*Loader, error) {
	if v := reflect.ValueOf(src); src == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fail(status.InvalidArgument, "there is no source").WithHint("give a dataset; arrowio.Open, which makes one, gives nil with an error")
	}
	if o.Layout == nil {
		return nil, fail(status.InvalidArgument, "there is no layout").WithHint("set Options.Layout")
	}
	planned := o.Layout.Document().Dataset // a copy of the whole document: once
	if err := check(src, &o, planned); err != nil {
		return nil, err
	}
	fingerprint, err := src.Fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkFingerprint(planned, fingerprint); err != nil {
		return nil, err
	}
	l := &Loader{src: src, o: o, grid: gridOf(o.Layout, src), count: &batch.Count{}}
	live := State{Dataset: fingerprint, Records: src.Len()}
	if live.Order, live.Seed, err = o.order(planned); err != nil {
		return nil, err
	}
	if l.first, err = newSequence(live); err != nil {
		return nil, err
	}
	if err := l.planFor(o.Process); err != nil {
		return nil, err
	}
	if err := source.Check(ctx, src, l.plan.fields()); err != nil {
		return nil, err
	}
	return l.begin()
}

// planFor works out what the process loads, and finds the memory for it.
func (l *Loader) planFor(process int) (err error) {
	if l.plan, err = newPlan(l.o.Layout, process, l.src.Schema(), l.o.Fill); err != nil {
		return err
	}
	if bound := l.o.MaxHostBytes; bound > 0 && l.plan.need() > bound {
		return fail(status.ResourceExhausted, "one batch takes %d bytes in process %d, but max_host_bytes is %d", l.plan.need(), process, bound).
			WithHint("raise it: reading ahead takes %d batches more", l.o.prefetch())
	}
	if l.o.Allocator == nil {
		l.o.Allocator = batch.NewHeap(l.o.prefetch() + 3)
	}
	return nil
}

// begin places the cursor and opens the first pass.
func (l *Loader) begin() (*Loader, error) {
	var asked, c batch.Cursor
	if l.o.State != nil {
		s, err := ParseState(l.o.State)
		if err != nil {
			return nil, err
		}
		if c, l.first, err = l.resume(l.first, s, l.o.IgnoreDataset); err != nil {
			return nil, err
		}
		asked = s.Cursor()
	}
	return l, l.open(asked, c)
}

// open makes the pass that starts at a settled cursor, with a gatherer of its
// own. Asked is the cursor before it settled.
func (l *Loader) open(asked, c batch.Cursor) error {
	var g source.Gatherer
	announce := func([]int64) {}
	if len(l.plan.parts) > 0 {
		var err error
		if g, err = l.src.Gatherer(l.plan.parts); err != nil {
			return err
		}
		if g == nil {
			return fail(status.IO, "the source gave neither a gatherer nor an error").WithHint("mend the source's method Gatherer")
		}
		announce = g.Ahead
	}
	until := int64(l.o.Epochs)
	l.maker = &maker{
		plan: l.plan, grid: l.grid, gatherer: g, alloc: l.o.Allocator, count: l.count,
		seed: l.first.state.Seed, limit: l.o.MaxHostBytes, shares: l.plan.share(l.o.workers(l.plan.loaded)),
		window: &window{grid: l.grid, until: until, rows: l.plan.rows, order: l.first.order, announce: announce},
	}
	l.line = newPrefetch(l.maker, &l.o, l.first, asked, c)
	return nil
}

// Close ends the gathering, waits for it, and frees what stood ready. Batches
// that were delivered stay their owners'. Calls under way fail with Cancelled,
// later ones with InvalidState; closing again does nothing. Close waits at
// most a second for a read that a disk does not answer; such a read ends by
// itself, and what it used is freed then.
func (l *Loader) Close() error {
	l.line.close()
	return nil
}

// end closes the gatherer when no gather runs any more.
func (m *maker) end() {
	if m.gatherer != nil {
		_ = guard.Call("loader", m.gatherer.Close) // nobody is left to hear of it
	}
}

// Layout gives the layout.
func (l *Loader) Layout() *layout.Layout { return l.o.Layout }

// Process gives the process whose blocks these are.
func (l *Loader) Process() int { return l.o.Process }

// Blocks lists the blocks of every batch, in the order of
// Layout().Process(Process()).Blocks. The list must not be changed.
func (l *Loader) Blocks() []batch.Block { return l.plan.blocks }

// Prefetch gives the number of batches that may stand ready.
func (l *Loader) Prefetch() int { return l.o.prefetch() }

// StepsPerEpoch gives the number of steps of a whole epoch.
func (l *Loader) StepsPerEpoch() int64 { return l.grid.steps(0) }
