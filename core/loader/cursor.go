package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
)

// State returns where the first batch starts that was not delivered yet. Ready
// batches do not count as delivered.
func (l *Loader) State() (s State) {
	p := l.prefetcher
	p.inspect(func() { s = p.sequence.Load().at(p.cursor) })
	return s
}

// StateAfter returns the state that State returned when b was the last delivered
// batch. If Restore has changed the order's parameters since then, the result is
// wrong.
func (l *Loader) StateAfter(b *batch.Batch) State {
	return l.prefetcher.sequence.Load().at(b.Step().After)
}

// Epoch returns the epoch of the next batch.
func (l *Loader) Epoch() int64 { return l.State().Epoch }

// Step returns the index of the next batch within its epoch: the position divided
// by the batch size, rounded down.
func (l *Loader) Step() int64 { return l.State().Position / l.grid.batch }

// Restore continues at a state: the JSON of State, of this loader or of a run on
// any other topology, batch size or remainder. The error is Incompatible if
// dataset, number of records, order or seed differ; with ignoreDataset the dataset
// may differ. Ready batches are dropped. A position that leaves no step in its
// epoch becomes the start of the next epoch.
func (l *Loader) Restore(state []byte, ignoreDataset bool) error {
	s, err := ParseState(state)
	if err != nil {
		return err
	}
	p := l.prefetcher
	return p.change(func() error {
		c, q, err := l.resume(p.sequence.Load(), s, ignoreDataset)
		if err != nil {
			return err
		}
		p.setSequence(q)
		p.ledger.begin(s.Cursor(), c)
		p.move(c, newLoop)
		return nil
	})
}

// Seek continues at a position of an epoch. It need not be a multiple of the
// batch size. Ready batches are dropped. A position that leaves no step in its
// epoch becomes the start of the next epoch.
func (l *Loader) Seek(c batch.Cursor) error { return l.moveTo(c, (*ledger).begin) }

// moveTo continues at a normalized cursor: if no step is left in the epoch, at the
// start of the next one. First record enters both cursors in the ledger.
func (l *Loader) moveTo(c batch.Cursor, record func(g *ledger, requested, at batch.Cursor)) error {
	if err := l.grid.check(c); err != nil {
		return err
	}
	p, to := l.prefetcher, l.grid.normalize(c)
	return p.change(func() error {
		record(&p.ledger, c, to)
		p.move(to, newLoop)
		return nil
	})
}

// Skip leaves out the next n steps, for example after a spike of the loss.
// Certificates name them as skipped. A State saved from now on continues after
// them. If they go beyond the end of an epoch, the rest is skipped in the next
// epoch, but a loop of one epoch ends. Ready batches are dropped. The error is
// OutOfRange beyond the end of Options.Epochs; then the cursor does not move.
//
// All processes of a job must skip the same steps.
func (l *Loader) Skip(n int64) error {
	p := l.prefetcher
	return p.change(func() error {
		s, err := l.grid.skip(p.cursor, n, p.until)
		if err != nil || n == 0 {
			return err
		}
		p.ledger.skip(s)
		p.move(s.to, p.loop)
		return nil
	})
}

// resume returns the normalized cursor of a saved state, and the sequence to
// continue with.
func (l *Loader) resume(q *sequence, s State, ignoreDataset bool) (batch.Cursor, *sequence, error) {
	q, err := q.resume(s, l.src, &l.o, ignoreDataset)
	if err != nil {
		return batch.Cursor{}, nil, err
	}
	if err := l.grid.check(s.Cursor()); err != nil {
		return batch.Cursor{}, nil, err
	}
	return l.grid.normalize(s.Cursor()), q, nil
}

// Records returns the records of the global batch that starts at a cursor, row by
// row, with -1 for padding rows. The error is OutOfRange if no batch starts there,
// or beyond Options.Epochs.
func (l *Loader) Records(c batch.Cursor) ([]int64, error) {
	if err := l.checkEpoch(c); err != nil {
		return nil, err
	}
	if l.grid.steps(c.Position) == 0 {
		return nil, fail(status.OutOfRange, "no batch of %d starts at position %d of %d records", l.grid.batch, c.Position, l.grid.records).
			With("position", c.Position).With("batch", l.grid.batch)
	}
	if l.grid.batch > maxListed {
		return nil, fail(status.ResourceExhausted, "a batch of %d rows is too large to list: at most %d rows", l.grid.batch, maxListed)
	}
	list := make([]int64, l.grid.batch)
	valid := l.grid.stepAt(c).Valid
	l.prefetcher.sequence.Load().order.Epoch(c.Epoch).Fill(list[:valid], c.Position)
	for i := valid; i < l.grid.batch; i++ {
		list[i] = padding
	}
	return list, nil
}

// maxListed bounds what Records allocates.
const maxListed = 1 << 26
