package loader

import (
	"context"
	"math"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// worker gathers some rows of every step.
type worker struct {
	rows [2]int       // range of the record list (see rows)
	plan []job        // their rows count from rows[0]
	jobs []source.Job // plan with the memory of the current batch

	times source.Times
	waits source.Waits // of the current batch
	bad   source.Bad   // of the current batch
}

// workers divides the rows of a step into equal parts for n workers. A row is
// read once per step, by one worker, for all blocks.
func (p *plan) workers(n int) []worker {
	n = max(1, min(n, p.rows.count))
	list := make([]worker, n)
	for i := range list {
		w := &list[i]
		w.rows = [2]int{p.rows.count * i / n, p.rows.count * (i + 1) / n}
		for _, j := range p.jobs {
			if j, ok := j.within(w.rows); ok {
				w.plan = append(w.plan, j)
				w.jobs = append(w.jobs, source.Job{Part: j.part, Rows: j.rows})
			}
		}
	}
	return list
}

// within returns the part of a job that lies in rows, counted from their start.
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

// gather does the jobs of all workers. When it returns, no worker writes to the
// memory any more. An error of one worker ends the others.
func (b *builder) gather(ctx context.Context, memory batch.Memory, draw source.Draw, records []int64) error {
	if b.gatherer == nil {
		return nil
	}
	for i := range b.workers {
		b.workers[i].aim(memory)
	}
	if len(b.workers) == 1 {
		return b.workers[0].gather(ctx, b.gatherer, draw, records)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Parallel would return when its context ends, while workers still write to the
	// batch. So it gets a context that does not end.
	err := guard.Parallel(context.WithoutCancel(ctx), "loader", len(b.workers), len(b.workers), func(i int) error {
		w := &b.workers[i]
		err := guard.Call("loader", func() error {
			return w.gather(ctx, b.gatherer, draw, records)
		})
		if err != nil {
			cancel(err) // ends the other workers
		}
		return err
	})
	if err != nil {
		return context.Cause(ctx) // the first error; it ended the other workers, and their errors follow from it
	}
	return nil
}

// gather does the jobs of a worker, and measures its waits.
func (w *worker) gather(ctx context.Context, g source.Gatherer, draw source.Draw, records []int64) error {
	err := g.Gather(source.WithTimes(ctx, &w.times), draw, records[w.rows[0]:w.rows[1]], w.jobs)
	w.waits, w.bad = w.times.Take(), w.times.TakeBad()
	return err
}

// bad returns the number of bad records of the batch, each once, and the error of the first one.
func (b *builder) bad() (n int64, first error) {
	var all source.Bad
	for i := range b.workers {
		for record, err := range b.workers[i].bad {
			if all == nil {
				all = make(source.Bad)
			}
			all[record] = err
		}
	}
	lowest := int64(math.MaxInt64)
	for r, err := range all {
		if r.Record < lowest {
			lowest, first = r.Record, err
		}
	}
	return int64(len(all)), first
}

// waits returns the waits of the worker that waited longest, because the others finished
// before it.
func (b *builder) waits() (most source.Waits) {
	for i := range b.workers {
		if w := b.workers[i].waits; w.All() >= most.All() {
			most = w
		}
	}
	return most
}

// aim sets the destinations of the jobs to the memory of a batch.
func (w *worker) aim(memory batch.Memory) {
	block, dst := -1, []byte(nil)
	for i, j := range w.plan {
		if j.block != block {
			block, dst = j.block, memory.Dst(j.block)
		}
		w.jobs[i].Dst = dst[j.bytes[0]:j.bytes[1]:j.bytes[1]]
	}
}
