package loader

import (
	"context"
	"iter"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
)

// Next gives the next batch, which from now on belongs to the caller, who
// releases it. It waits until the batch is ready.
//
// At the end of the run the error has code End: with Options.Epochs = k from
// then on, with Epochs = 0 once at the end of every epoch, and the call after
// that begins the next one.
//
// A step that fails gives its error in its place, after all batches before it.
// The cursor stays there: the call after that tries the same step again, and
// Seek goes elsewhere, so nothing is skipped unless the caller says so.
//
// A cancelled ctx gives Cancelled, also where a batch stands ready; one whose
// deadline has passed gives Timeout, but not where a batch stands ready. Either
// way nothing is lost.
func (l *Loader) Next(ctx context.Context) (*batch.Batch, error) { return l.line.next(ctx) }

// All is a loop over the batches from the cursor on: to the end of the epoch
// with Options.Epochs = 0, to the end of epoch k-1 with Epochs = k, without end
// with -1. After a break, the next loop continues with the next batch. The loop
// body releases each batch. An error ends the loop after it was yielded.
func (l *Loader) All(ctx context.Context) iter.Seq2[*batch.Batch, error] {
	return func(yield func(*batch.Batch, error) bool) {
		l.line.begin()
		for {
			b, err := l.Next(ctx)
			if status.CodeOf(err) == status.End {
				return
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Len gives the number of batches that a loop started now yields; -1 if it has
// no end.
func (l *Loader) Len() int64 {
	return l.grid.length(l.State().Cursor(), int64(l.o.Epochs))
}

// OneEpoch opens an independent pass over one epoch, for evaluation: a loader
// of its own with its cursor at the start of that epoch, which ends with it.
// The cursor of l does not move. The pass shares the memory and the bound of
// l, outlives it, and is closed by the caller. Beyond Options.Epochs the error
// is OutOfRange.
func (l *Loader) OneEpoch(epoch int64) (*Loader, error) {
	c := batch.Cursor{Epoch: epoch}
	if err := l.grid.check(c); err != nil {
		return nil, err
	}
	if k := l.o.Epochs; k > 0 && epoch >= int64(k) {
		return nil, fail(status.OutOfRange, "there is no epoch %d: the loader has %d", epoch, k).
			WithHint("epochs count from 0").With("epoch", epoch).With("epochs", int64(k))
	}
	pass := *l
	pass.first = l.line.sequence.Load()
	pass.o.Epochs = int(epoch + 1)
	return making(func() (*Loader, error) { return &pass, pass.open(c, c) })
}
