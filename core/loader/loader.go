// Package loader delivers the batches of one process of a device mesh: rows in
// the epoch's order, gathered shard by shard, and built ahead of their use. A run
// can resume at any position of an epoch.
//
// A [Loader] uses other packages. The layout defines which blocks the process
// holds, and which rows of the global batch they need. The sampler maps these rows
// to records. The source copies the records into memory of an allocator:
//
//	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true})
//	defer l.Close()
//	for b, err := range l.All(ctx) {
//		if err != nil { … }
//		labels, err := loader.Values[int32](b, "label")
//		…
//		b.Release()
//	}
//
// Every process runs its own loader, with the same layout, dataset, order and seed.
// Loaders do not communicate: all compute the same sequence of global batches, and
// each gathers its part. [Options.Process] may be any process, so one test can run
// the loaders of all processes.
//
// [Loader.State] contains the position of the next batch. A run can continue there
// with another mesh, number of processes, batch size or remainder.
//
// README.md in this directory describes the path of one record through the loader,
// the states of the prefetcher, and the owner of every resource.
package loader

import (
	"context"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Loader delivers batches. Its cursor is the epoch and position of the next batch.
// All methods are safe for concurrent use. Each batch is returned by one call of
// Next.
type Loader struct {
	src        source.Source
	o          Options
	plan       *plan
	grid       grid
	first      *sequence    // at creation; Restore replaces it in the prefetcher only
	count      *batch.Count // live batches, also of loaders made by OneEpoch and Remesh
	prefetcher *prefetcher
	certified  *atomic.Pointer[certificate.Certificate] // has units and no runs; passes and remeshed loaders share it
}

// New returns a loader with the cursor at the start, or at Options.State. It checks
// everything that can be checked before a row is read. If several things are wrong, the
// error names all of them. Nothing is gathered before the first call of Next.
//
// The caller closes the source, after the loader.
func New(src source.Source, o Options) (*Loader, error) {
	return NewContext(context.Background(), src, o)
}

// NewContext is New with a context that can cancel its reads from disk: of data for
// the dataset's fingerprint, and of list lengths that are not in the metadata.
func NewContext(ctx context.Context, src source.Source, o Options) (*Loader, error) {
	return construct(func() (*Loader, error) { return newLoader(ctx, src, o) })
}

func newLoader(ctx context.Context, src source.Source, o Options) (*Loader, error) {
	if err := source.Given("loader", src); err != nil {
		return nil, err
	}
	if err := o.setLayout(src.Schema()); err != nil {
		return nil, err
	}
	planned := o.Layout.Document().Dataset // copies the whole document
	if err := check(src, &o, planned); err != nil {
		return nil, err
	}
	fingerprint, err := src.Fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkContent(planned, src, fingerprint); err != nil {
		return nil, err
	}
	l := &Loader{src: src, o: o, grid: gridOf(o.Layout, src), count: &batch.Count{}, certified: &atomic.Pointer[certificate.Certificate]{}}
	live := State{Dataset: fingerprint, Records: src.Len(), Commit: commitOf(src)}
	if live.Order, live.Seed, err = o.order(planned, src); err != nil {
		return nil, err
	}
	if l.first, err = newSequence(live, src); err != nil {
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

// planFor makes the plan of the process, and chooses the allocator.
func (l *Loader) planFor(process int) (err error) {
	if l.plan, err = newPlan(l.o.Layout, process, l.src.Schema(), l.o.Fill); err != nil {
		return err
	}
	if bound := l.o.MaxHostBytes; bound > 0 && l.plan.need() > bound {
		return fail(status.ResourceExhausted, "one batch takes %d bytes in process %d, but Options.MaxHostBytes is %d", l.plan.need(), process, bound).
			WithHint("raise it: reading ahead takes %d batches more", l.o.prefetch())
	}
	if l.o.Allocator == nil {
		l.o.Allocator = batch.NewHeap(l.o.prefetch() + 3)
	}
	return nil
}

// begin starts the prefetcher at epoch 0, or at Options.State.
func (l *Loader) begin() (*Loader, error) {
	var requested, c batch.Cursor
	if l.o.State != nil {
		s, err := ParseState(l.o.State)
		if err != nil {
			return nil, err
		}
		if c, l.first, err = l.resume(l.first, s, l.o.IgnoreDataset); err != nil {
			return nil, err
		}
		requested = s.Cursor()
	}
	return l, l.open(requested, c)
}

// open makes the gatherer and the prefetcher of the loader. The prefetcher starts at
// c, which is the requested cursor after grid.normalize.
func (l *Loader) open(requested, c batch.Cursor) error {
	var g source.Gatherer
	announce := func(source.Draw, []int64) {}
	if len(l.plan.parts) > 0 {
		var err error
		if g, err = l.src.Gatherer(l.plan.parts); err != nil {
			return err
		}
		if g == nil {
			return fail(status.IO, "the source returned neither a gatherer nor an error").WithHint("correct the source's method Gatherer")
		}
		announce = g.Ahead
	}
	until := int64(l.o.Epochs)
	b := &builder{
		plan: l.plan, grid: l.grid, gatherer: g, alloc: l.o.Allocator, count: l.count,
		limit: l.o.MaxHostBytes, workers: l.plan.workers(l.o.workers(l.src, l.plan.loaded)),
		window:   &window{grid: l.grid, until: until, rows: l.plan.rows, order: l.first.order, seed: l.first.state.Seed, announce: announce},
		upcoming: newUpcoming(l.src, l.plan, l.grid),
	}
	l.prefetcher = newPrefetcher(b, &l.o, l.first, requested, c)
	return nil
}

// Close cancels the gather under way, waits for it, and frees ready batches.
// Delivered batches stay valid. Calls of Next under way fail with Cancelled, later
// calls with InvalidState. A second Close does nothing. If a read of a disk hangs,
// Close waits at most a second; the memory of the read is freed when the read ends.
func (l *Loader) Close() error {
	l.prefetcher.close()
	return nil
}

// Layout returns the layout.
func (l *Loader) Layout() *layout.Layout { return l.o.Layout }

// Process returns the process that this loader loads blocks for.
func (l *Loader) Process() int { return l.o.Process }

// Blocks returns the blocks of every batch, in the order of
// Layout().Process(Process()).Blocks. The list must not be changed.
func (l *Loader) Blocks() []batch.Block { return l.plan.blocks }

// Prefetch returns how many batches the loader builds ahead.
func (l *Loader) Prefetch() int { return l.o.prefetch() }

// StepsPerEpoch returns the number of steps of a whole epoch.
func (l *Loader) StepsPerEpoch() int64 { return l.grid.steps(0) }
