package loader

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// maker makes one batch after another: records, memory, gather, commit. Only
// one call of make runs at a time; what it needs from step to step is kept.
type maker struct {
	plan     *plan
	grid     grid
	window   *window
	gatherer source.Gatherer // nil where nothing is gathered
	alloc    batch.Allocator
	count    *batch.Count
	seed     int64
	limit    int64 // Options.MaxHostBytes

	whole    batch.Memory // in which blocks are gathered before they are cut out, from the first batch on
	shares   []share
	gathered atomic.Int64 // nanoseconds
	others   []int64      // records of plan.all, where these are more than those gathered
	madeOf   []int64      // the records by which mask and extras of the last batch were filled
	hintErr  error        // of the last lookAhead: the next batch fails with it
}

// share is what one worker does of every step: some rows and their jobs.
type share struct {
	rows  [2]int
	plan  []job // rows count from rows[0]
	ready []source.Job
}

// makeBatch makes the batch that starts at a settled cursor, and what this
// process counts of it. A panic in any part of it, the gatherer and the
// allocator included, becomes its error.
func (m *maker) makeBatch(ctx context.Context, c batch.Cursor) (b *batch.Batch, t certificate.Tally, err error) {
	place := m.grid.place(c)
	err = guard.Call("loader", func() error {
		b, t, err = m.build(ctx, place)
		return err
	})
	if err != nil {
		return nil, certificate.Tally{}, at(place, err)
	}
	return b, t, nil
}

// lookAhead announces what comes next. A panic of the gatherer is the next
// batch's error.
func (m *maker) lookAhead() {
	m.hintErr = guard.Call("loader", func() error { m.window.extend(); return nil })
}

func (m *maker) build(ctx context.Context, place batch.Place) (b *batch.Batch, t certificate.Tally, err error) {
	if err := m.hintErr; err != nil {
		m.hintErr = nil
		return nil, t, err
	}
	if err := m.checkLimit(); err != nil {
		return nil, t, err
	}
	records := m.window.at(place.Cursor)
	memory, err := m.alloc.Alloc(m.plan.blocks)
	if err != nil {
		return nil, t, err
	}
	complete := false
	defer func() {
		if !complete {
			memory.Free()
		}
	}()
	if err := m.fill(ctx, memory, records, place); err != nil {
		return nil, t, err
	}
	complete = true
	return batch.New(m.plan.blocks, memory, place, m.count), m.plan.count(records, m.madeOf, place), nil
}

func (m *maker) fill(ctx context.Context, memory batch.Memory, records []int64, place batch.Place) error {
	target, err := m.target(memory)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := m.gather(ctx, target, records); err != nil {
		return err
	}
	m.gathered.Add(int64(time.Since(began)))
	m.fillMade(target, records, place)
	m.plan.keep(memory, target)
	return memory.Commit(ctx)
}

// target gives the memory that is filled: the batch's own, unless the batch is
// cut out of a whole one.
func (m *maker) target(memory batch.Memory) (batch.Memory, error) {
	if m.plan.cuts == nil {
		return memory, nil
	}
	var err error
	if m.whole == nil {
		m.whole, err = batch.NewHeap(0).Alloc(m.plan.filled)
	}
	return m.whole, err
}

// fillMade fills the mask and the extras. They nearly always have the rows of
// the data; where they have others, their record list is computed here.
func (m *maker) fillMade(memory batch.Memory, records []int64, place batch.Place) {
	if len(m.plan.made) > 0 && m.plan.all.count > len(records) {
		if m.others == nil {
			m.others = make([]int64, m.plan.all.count)
		}
		records = m.others
		m.window.fill(records, m.plan.all, place.Cursor)
	}
	m.madeOf = records
	for _, b := range m.plan.made {
		b.fill(memory.Dst(b.block), records, m.seed, place.Epoch)
	}
}

// gather does the jobs of all workers, the first on this goroutine. It returns
// when none of them writes any more.
func (m *maker) gather(ctx context.Context, memory batch.Memory, records []int64) error {
	if m.gatherer == nil {
		return nil
	}
	for i := range m.shares {
		m.shares[i].aim(memory)
	}
	if len(m.shares) == 1 {
		return m.gatherer.Gather(ctx, records, m.shares[0].ready)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(m.shares))
	for i := range m.shares[1:] {
		s := &m.shares[i+1]
		guard.Go("loader", func() error {
			results <- m.work(ctx, cancel, s, records)
			return nil
		}, func(error) {}) // work neither fails nor panics: it says so itself
	}
	err := m.work(ctx, cancel, &m.shares[0], records)
	for range m.shares[1:] {
		err = worse(err, <-results)
	}
	return err
}

// work does one share; a failure ends the others.
func (m *maker) work(ctx context.Context, cancel func(), s *share, records []int64) error {
	err := guard.Call("loader", func() error {
		return m.gatherer.Gather(ctx, records[s.rows[0]:s.rows[1]], s.ready)
	})
	if err != nil {
		cancel()
	}
	return err
}

// worse prefers a failure to the cancellation that followed from it.
func worse(a, b error) error {
	if a == nil || (b != nil && errors.Is(a, context.Canceled)) {
		return b
	}
	return a
}

// aim points the jobs at a batch's memory.
func (s *share) aim(memory batch.Memory) {
	block, dst := -1, []byte(nil)
	for i, j := range s.plan {
		if j.block != block {
			block, dst = j.block, memory.Dst(j.block)
		}
		s.ready[i].Dst = dst[j.bytes[0]:j.bytes[1]:j.bytes[1]]
	}
}

// share cuts the rows of a step into equal parts for workers. A row stays
// whole: it is touched once, by one worker, for all its blocks.
func (p *plan) share(workers int) []share {
	workers = max(1, min(workers, p.rows.count))
	list := make([]share, workers)
	for i := range list {
		s := &list[i]
		s.rows = [2]int{p.rows.count * i / workers, p.rows.count * (i + 1) / workers}
		for _, j := range p.jobs {
			if j, ok := j.within(s.rows); ok {
				s.plan = append(s.plan, j)
				s.ready = append(s.ready, source.Job{Part: j.part, Rows: j.rows})
			}
		}
	}
	return list
}

// within gives the part of a job that lies in rows, counted from their start.
func (j job) within(rows [2]int) (job, bool) {
	start, stop := max(j.rows[0], rows[0]), min(j.rows[1], rows[1])
	if start >= stop {
		return job{}, false
	}
	size := (j.bytes[1] - j.bytes[0]) / (j.rows[1] - j.rows[0])
	j.bytes = [2]int{j.bytes[0] + (start-j.rows[0])*size, j.bytes[0] + (stop-j.rows[0])*size}
	j.rows = [2]int{start - rows[0], stop - rows[0]}
	return j, true
}

// live counts the batches that are not released and their bytes: by the
// allocator if it counts, since it also knows of those that were taken.
func (m *maker) live() (batches, bytes int64) {
	if c, ok := m.alloc.(batch.Counter); ok {
		return c.Live()
	}
	return m.count.Live()
}

// full says whether one more batch would break the limit.
func (m *maker) full() bool {
	_, bytes := m.live()
	return m.limit > 0 && bytes+m.plan.need() > m.limit
}

func (m *maker) checkLimit() error {
	if !m.full() {
		return nil
	}
	batches, bytes := m.live()
	return fail(status.ResourceExhausted, "%d batches of %d bytes in all are not released, and one more of %d would exceed max_host_bytes = %d",
		batches, bytes, m.plan.need(), m.limit).
		WithHint("release batches, or drop references to their arrays; then ask again").
		With("live_batches", batches).With("live_bytes", bytes).With("batch_bytes", m.plan.need())
}
