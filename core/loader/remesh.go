package loader

import (
	"context"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Remesh gives a loader that goes on where l stands, on another layout and for
// any process of it: what a run does when its mesh has lost or won devices. A
// process of the run that has no devices in the new mesh may go on too, and gets
// batches without blocks. The source, its files, the order and all options but these stay as
// they are, so it costs the planning and no reading, but of the lengths of
// lists that l does not load. A loop goes on too: it ends where that of l would
// have ended, and the counts of Stats go on.
//
// The memory of batches comes from alloc, or from a batch.Heap of the new
// loader's own where that is nil. MaxHostBytes does not count the batches that
// l delivered.
//
// l itself is left as it is, whether this fails or not. The caller closes it,
// which drops what it has read ahead; batches that it delivered stay their
// owners', and so do its passes.
//
// The error is OutOfRange for a process that neither layout has, nor
// Options.Processes counts. It is Incompatible where the layout's document names another dataset,
// and InvalidArgument where l stands at a position that the layout's remainder
// "error" does not allow. An order in the document does not count: l has one.
func (l *Loader) Remesh(lay *layout.Layout, process int, alloc batch.Allocator) (*Loader, error) {
	return making(func() (*Loader, error) { return l.remesh(lay, process, alloc) })
}

func (l *Loader) remesh(lay *layout.Layout, process int, alloc batch.Allocator) (*Loader, error) {
	if lay == nil {
		return nil, fail(status.InvalidArgument, "there is no layout").WithHint("give the layout to go on with")
	}
	next := &Loader{src: l.src, o: l.o, grid: gridOf(lay, l.src), first: l.line.sequence.Load(), count: l.count}
	next.o.Processes = l.o.processes()
	next.o.Layout, next.o.Process, next.o.Allocator = lay, process, alloc
	planned := lay.Document().Dataset
	if err := check(l.src, &next.o, planned); err != nil {
		return nil, err
	}
	if err := checkFingerprint(planned, next.first.state.Dataset); err != nil {
		return nil, err
	}
	if err := next.planFor(process); err != nil {
		return nil, err
	}
	if err := source.Check(context.Background(), l.src, next.plan.fields()); err != nil {
		return nil, err
	}
	if err := next.follow(l); err != nil {
		return nil, err
	}
	return next, nil
}

// follow opens the pass at the cursor of another loader, in the middle of its
// loop.
func (l *Loader) follow(other *Loader) error {
	line := other.line
	line.hold()
	defer line.leave()
	if line.closed {
		return closed()
	}
	if err := l.grid.check(line.cursor); err != nil {
		return err
	}
	l.first = line.sequence.Load()
	if err := l.open(line.cursor, l.grid.settle(line.cursor)); err != nil {
		return err
	}
	l.line.loop, l.line.counts = line.loop, line.counts.now()
	l.line.ledger = line.ledger.remeshed(l.plan.run, line.cursor, l.line.cursor)
	l.maker.gathered.Store(other.maker.gathered.Load())
	return nil
}
