package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
)

// State says where the next batch that was not delivered yet starts. Batches
// that stand ready do not count.
func (l *Loader) State() State {
	l.line.hold()
	defer l.line.leave()
	return l.stateAt(l.line.cursor)
}

// StateAfter gives the state behind a batch of this loader: what State gave
// when it was the last one delivered. After a Restore that changed the order's
// parameters it is not to be asked for earlier batches.
func (l *Loader) StateAfter(b *batch.Batch) State { return l.stateAt(b.Place().After) }

func (l *Loader) stateAt(c batch.Cursor) State {
	s := l.line.sequence.Load().state
	s.Epoch, s.Position = c.Epoch, c.Position
	return s
}

// Epoch gives the epoch of the next batch.
func (l *Loader) Epoch() int64 { return l.State().Epoch }

// Step gives the index of the next batch within its epoch: the position
// divided by the batch size, rounded down.
func (l *Loader) Step() int64 { return l.State().Position / l.grid.batch }

// Restore continues where a state stands: the JSON of State, of this loader or
// of a run on any other topology, batch size or remainder. It is refused with
// Incompatible where dataset, number of records, order or seed differ;
// ignoreDataset lets another dataset through that has as many records. What
// stood ready is dropped. A position that leaves no step in its epoch becomes
// the start of the next.
func (l *Loader) Restore(state []byte, ignoreDataset bool) error {
	s, err := ParseState(state)
	if err != nil {
		return err
	}
	l.line.hold()
	defer l.line.leave()
	c, q, err := l.resume(l.line.sequence.Load(), s, ignoreDataset)
	if err != nil {
		return err
	}
	return l.line.jumpTo(s.Cursor(), c, q)
}

// Seek continues at a position of an epoch. It need not be a multiple of the
// batch size. What stood ready is dropped. A position that leaves no step
// in its epoch becomes the start of the next.
func (l *Loader) Seek(c batch.Cursor) error {
	if err := l.grid.check(c); err != nil {
		return err
	}
	return l.line.jump(l.grid.settle(c), func(g *ledger, to batch.Cursor) { g.begin(c, to) })
}

// Skip leaves out the next n steps, as after a spike of the loss: the next
// batch is the one behind them. Certificates name them as skipped. A State
// saved from now on continues behind them. Steps that lead beyond the end of an
// epoch go on in the next one, but a loop of one epoch ends. What stood ready is
// dropped. The error is OutOfRange beyond the end of Options.Epochs; the cursor
// then stays.
//
// All processes of a job skip alike.
func (l *Loader) Skip(n int64) error { return l.line.skip(n) }

// resume gives the settled cursor of a saved state, and the sequence to go on
// with.
func (l *Loader) resume(q *sequence, s State, ignoreDataset bool) (batch.Cursor, *sequence, error) {
	q, err := q.resume(s, &l.o, ignoreDataset)
	if err != nil {
		return batch.Cursor{}, nil, err
	}
	if err := l.grid.check(s.Cursor()); err != nil {
		return batch.Cursor{}, nil, err
	}
	return l.grid.settle(s.Cursor()), q, nil
}

// Records gives the records of the global batch that starts at a cursor, row by
// row; -1 in rows of padding. The error is OutOfRange if no batch starts there.
func (l *Loader) Records(c batch.Cursor) ([]int64, error) {
	if err := l.grid.check(c); err != nil {
		return nil, err
	}
	if l.grid.steps(c.Position) == 0 {
		return nil, fail(status.OutOfRange, "no batch of %d starts at position %d of %d records", l.grid.batch, c.Position, l.grid.records).
			With("position", c.Position).With("batch", l.grid.batch)
	}
	if l.grid.batch > maxListed {
		return nil, fail(status.ResourceExhausted, "a batch of %d rows is too large to list", l.grid.batch)
	}
	list := make([]int64, l.grid.batch)
	valid := l.grid.place(c).Valid
	l.line.sequence.Load().order.Epoch(c.Epoch).Fill(list[:valid], c.Position)
	for i := range list[valid:] {
		list[valid+int64(i)] = padding
	}
	return list, nil
}

// maxListed bounds what Records allocates.
const maxListed = 1 << 26
