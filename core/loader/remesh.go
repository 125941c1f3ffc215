package loader

import (
	"context"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Remesh returns a loader that continues at the cursor of l, with another layout and
// for any process of that layout. A run calls it when its mesh has lost or gained
// devices. A process of the run without devices in the new mesh may also continue;
// it gets batches without blocks.
//
// The source, the order and all other options stay the same. Remesh reads no data,
// except for the lengths of lists in fields that l does not load. A loop over l
// continues in the new loader, and ends at the same epoch as before. The counts of
// Stats continue.
//
// The memory of batches comes from alloc, or from a batch.Heap of the new loader
// if alloc is nil. MaxHostBytes does not count batches that l delivered.
//
// Remesh does not change l. The caller closes l, which drops its ready batches.
// Delivered batches of l, and loaders made by its OneEpoch, stay valid.
//
// The error is OutOfRange if neither layout has the process and Options.Processes
// does not count it. The error is Incompatible if the layout's document names another
// dataset, and InvalidArgument if the layout's remainder "error" does not allow
// the position of l. An order in the document is ignored.
func (l *Loader) Remesh(lay *layout.Layout, process int, alloc batch.Allocator) (*Loader, error) {
	return construct(func() (*Loader, error) { return l.remesh(lay, process, alloc) })
}

func (l *Loader) remesh(lay *layout.Layout, process int, alloc batch.Allocator) (*Loader, error) {
	if lay == nil {
		return nil, fail(status.InvalidArgument, "there is no layout").WithHint("give the layout to continue with")
	}
	next := &Loader{src: l.src, o: l.o, grid: gridOf(lay, l.src), first: l.prefetcher.sequence.Load(), count: l.count, certified: l.certified}
	next.o.Processes = l.o.processes()
	next.o.Layout, next.o.Process, next.o.Allocator = lay, process, alloc
	planned := lay.Document().Dataset
	if err := check(l.src, &next.o, planned); err != nil {
		return nil, err
	}
	if err := checkContent(planned, l.src, next.first.state.Dataset); err != nil {
		return nil, err
	}
	if err := next.planFor(process); err != nil {
		return nil, err
	}
	if err := source.Check(context.Background(), l.src, next.plan.fields()); err != nil {
		return nil, err
	}
	if err := next.continueFrom(l); err != nil {
		return nil, err
	}
	return next, nil
}

// continueFrom opens this loader at the cursor of another loader, and continues the
// other loader's loop.
func (l *Loader) continueFrom(other *Loader) (err error) {
	from := other.prefetcher
	from.inspect(func() { err = l.copyFrom(from) })
	return err
}

// copyFrom runs under the lock of from, so that its cursor and ledger do not change.
func (l *Loader) copyFrom(from *prefetcher) error {
	if from.state == closed {
		return closedError()
	}
	if err := l.grid.check(from.cursor); err != nil {
		return err
	}
	l.first = from.sequence.Load()
	if err := l.open(from.cursor, l.grid.normalize(from.cursor)); err != nil {
		return err
	}
	p := l.prefetcher
	p.loop, p.counts = from.loop, from.counts.now()
	p.ledger = from.ledger.remeshed(l.plan.run, from.cursor, p.cursor)
	return nil
}
