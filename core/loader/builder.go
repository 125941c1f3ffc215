package loader

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// builder builds one batch after another. For each batch it determines the records,
// allocates memory, gathers the rows and commits the memory. Its methods build and
// lookAhead run one at a time. Buffers are reused from batch to batch.
type builder struct {
	plan     *plan
	grid     grid
	window   *window
	upcoming *upcoming       // nil if no units are announced
	gatherer source.Gatherer // nil if no array takes rows of the dataset
	alloc    batch.Allocator
	count    *batch.Count
	limit    int64 // Options.MaxHostBytes

	workers    []worker
	whole      batch.Memory  // memory of a whole batch, with layout.LoadGlobal; allocated for the first
	gathering  time.Duration // time of the last gather
	announcing time.Duration // time of the last lookAhead
	after      batch.Cursor  // position of the step after the last build

	computedRecords []int64 // record list of the last batch's computed blocks: mask and extras
	spareRecords    []int64 // buffer for this list, if it is longer than the list that is gathered
	aheadErr        error   // error of the last lookAhead; the next build returns it
}

// build builds the batch at a cursor, and the evidence of its rows. A panic in any
// part of it, such as the gatherer or the allocator, becomes an error.
func (b *builder) build(ctx context.Context, c batch.Cursor) (r result) {
	began := time.Now()
	step := b.grid.stepAt(c)
	err := guard.Call("loader", func() (err error) {
		r.batch, r.evidence, r.firstBad, err = b.buildAt(ctx, step)
		return err
	})
	if err != nil {
		return result{err: atStep(step, err)}
	}
	r.gather, r.build = b.gathering, b.announcing+time.Since(began)
	r.waits = b.waits()
	return r
}

// lookAhead announces the records of later steps, and units of the next window of the
// order, to the gatherer. If the gatherer panics, the next build fails.
func (b *builder) lookAhead() {
	began := time.Now()
	b.aheadErr = guard.Call("loader", func() error {
		b.window.extend()
		if b.upcoming != nil {
			b.upcoming.advance(b.window, b.after)
		}
		return nil
	})
	b.announcing = time.Since(began)
}

func (b *builder) buildAt(ctx context.Context, step batch.Step) (built *batch.Batch, evidence certificate.Evidence, firstBad, err error) {
	if err := b.aheadErr; err != nil {
		b.aheadErr = nil
		return nil, evidence, nil, err
	}
	if err := b.checkLimit(); err != nil {
		return nil, evidence, nil, err
	}
	b.after = step.After
	records := b.window.at(step.Cursor)
	memory, err := b.alloc.Alloc(b.plan.blocks)
	if err != nil {
		return nil, evidence, nil, err
	}
	defer func() {
		if built == nil { // an error or a panic
			memory.Free()
		}
	}()
	if err := b.fill(ctx, memory, records, step); err != nil {
		return nil, evidence, nil, err
	}
	step.Bad, firstBad = b.bad()
	evidence = b.plan.evidence(records, b.computedRecords, step)
	return batch.New(b.plan.blocks, memory, step, b.count), evidence, firstBad, nil
}

// fill writes all blocks of a batch.
func (b *builder) fill(ctx context.Context, memory batch.Memory, records []int64, step batch.Step) error {
	target, err := b.target(memory)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.gather(ctx, target, b.window.draw(step.Epoch), records); err != nil {
		return err
	}
	b.gathering = time.Since(began)
	b.compute(target, records, step)
	b.plan.copyBlocks(memory, target)
	return memory.Commit(ctx)
}

// target returns the memory to fill: the batch's own memory, or a whole batch to copy
// the blocks from.
func (b *builder) target(memory batch.Memory) (batch.Memory, error) {
	if b.plan.cuts == nil {
		return memory, nil
	}
	var err error
	if b.whole == nil {
		b.whole, err = batch.NewHeap(0).Alloc(b.plan.filled)
	}
	return b.whole, err
}

// compute fills the mask and the extras. They nearly always have the rows of the
// data, and share the record list. If they have more rows, compute determines their
// record list.
func (b *builder) compute(memory batch.Memory, records []int64, step batch.Step) {
	if len(b.plan.computed) > 0 && b.plan.all.count > len(records) {
		if b.spareRecords == nil {
			b.spareRecords = make([]int64, b.plan.all.count)
		}
		records = b.spareRecords
		b.window.fill(records, b.plan.all, step.Cursor)
	}
	b.computedRecords = records
	for _, c := range b.plan.computed {
		c.fill(memory.Dst(c.block), records, b.window.draw(step.Epoch))
	}
}

// live returns the number and the bytes of batches that are not released. If the allocator
// is a batch.Counter, they include batches that Take moved away.
func (b *builder) live() (batches, bytes int64) {
	if c, ok := b.alloc.(batch.Counter); ok {
		return c.Live()
	}
	return b.count.Live()
}

// full reports whether one more batch would exceed the limit.
func (b *builder) full() bool {
	if b.limit == 0 {
		return false
	}
	_, bytes := b.live()
	return bytes+b.plan.need() > b.limit
}

func (b *builder) checkLimit() error {
	if !b.full() {
		return nil
	}
	batches, bytes := b.live()
	return fail(status.ResourceExhausted, "%d batches of %d bytes in all are not released, and one more of %d would exceed Options.MaxHostBytes = %d",
		batches, bytes, b.plan.need(), b.limit).
		WithHint("release batches, or drop references to their arrays; then ask again").
		With("live_batches", batches).With("live_bytes", bytes).With("batch_bytes", b.plan.need())
}

// end closes the gatherer. It is called when no build runs any more.
func (b *builder) end() {
	if b.gatherer != nil {
		_ = guard.Call("loader", b.gatherer.Close) // no call is left that could report an error
	}
}
