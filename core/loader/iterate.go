package loader

import (
	"context"
	"iter"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
)

// Next waits for the next batch and returns it. The caller owns the batch and
// releases it.
//
// At the end of a loop the error has code End. With Options.Epochs = 0 a loop ends
// with its epoch: one call returns End, and the next call begins the next epoch.
// With Epochs = k all calls after epoch k-1 return End.
//
// If a step fails, Next returns the error after all batches before the step. The
// cursor stays at the step, and the next call tries it again, so no step is skipped
// unless the caller uses Seek or Skip.
//
// If ctx is canceled, the error is Cancelled. If its deadline passes, the error is
// Timeout, unless a batch is ready. Either way, the next call returns the batch.
func (l *Loader) Next(ctx context.Context) (*batch.Batch, error) { return l.prefetcher.next(ctx) }

// All yields the batches from the cursor on. With Options.Epochs = 0 it ends with
// the epoch, with Epochs = k after epoch k-1, and with -1 never. After a break, the
// next loop continues with the next batch. The loop body must release each batch.
// An error is yielded and ends the loop.
func (l *Loader) All(ctx context.Context) iter.Seq2[*batch.Batch, error] {
	return func(yield func(*batch.Batch, error) bool) {
		l.prefetcher.beginLoop()
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

// Len returns the number of batches of a loop that starts at the cursor, or -1 if it
// has no end.
func (l *Loader) Len() int64 {
	return l.grid.length(l.State().Cursor(), int64(l.o.Epochs))
}

// OneEpoch returns a loader for one pass over an epoch, for example for
// evaluation. Its cursor starts at the epoch, and it ends with the epoch. The
// cursor of l does not move. The pass uses the allocator and the MaxHostBytes of l,
// may outlive l, and is closed by the caller. The error is OutOfRange beyond
// Options.Epochs.
func (l *Loader) OneEpoch(epoch int64) (*Loader, error) {
	c := batch.Cursor{Epoch: epoch}
	if err := l.checkEpoch(c); err != nil {
		return nil, err
	}
	pass := *l
	pass.first = l.prefetcher.sequence.Load()
	pass.o.Epochs = int(epoch + 1)
	return construct(func() (*Loader, error) { return &pass, pass.open(c, c) })
}

// checkEpoch returns an error if the cursor is not in an epoch of the loader.
func (l *Loader) checkEpoch(c batch.Cursor) error {
	if k := int64(l.o.Epochs); k > 0 && c.Epoch >= k {
		return fail(status.OutOfRange, "there is no epoch %d: the loader has %d", c.Epoch, k).
			WithHint("epochs count from 0").With("epoch", c.Epoch).With("epochs", k)
	}
	return l.grid.check(c)
}
