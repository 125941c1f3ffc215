package certificate

import (
	"context"
	"fmt"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// Expect counts the positions of some runs from order and seed alone: the
// evidence that all processes together must have. It takes some ten
// nanoseconds per position. The end of ctx ends it with Cancelled.
func Expect(ctx context.Context, s Sequence, runs []Run) (Tally, error) {
	order, err := sampler.New(s.Order, s.Seed, s.Records)
	if err != nil {
		return Tally{}, err
	}
	var t Tally
	for _, r := range runs {
		for epoch := r.Epoch; epoch < r.Epoch+r.Epochs; epoch++ {
			if err := expect(ctx, &t, order.Epoch(epoch), EpochOf(epoch), r); err != nil {
				return Tally{}, err
			}
		}
	}
	return t, nil
}

// expect adds the positions of one epoch.
func expect(ctx context.Context, t *Tally, order sampler.Epoch, epoch Epoch, r Run) error {
	var buffer [4096]int64
	for first := r.First; first < r.Last; first += int64(len(buffer)) {
		if ctx.Err() != nil {
			return fail(status.Cancelled, "the check was cancelled: %w", context.Cause(ctx))
		}
		records := buffer[:min(r.Last-first, int64(len(buffer)))]
		order.Fill(records, first)
		epoch.Count(t, first, records)
	}
	return nil
}

// Check says whether all positions that are claimed were delivered exactly
// once. If not, the error is DataLoss and says what is known.
func (c Certificate) Check(ctx context.Context) error {
	runs, err := c.Runs()
	if err != nil {
		return err
	}
	claimed, ok := positions(runs)
	switch {
	case !ok:
		return fail(status.ResourceExhausted, "more than 2^53 positions cannot be checked")
	case c.Rows < claimed:
		return fail(status.DataLoss, "%d of %d rows are missing, of positions %s", claimed-c.Rows, claimed, text(runs)).
			WithHint("add the certificates of all processes; if all are there, rows were lost").With("missing", claimed-c.Rows)
	case c.Rows > claimed:
		return fail(status.DataLoss, "%d rows came for %d positions, %s", c.Rows, claimed, text(runs)).
			WithHint("a certificate was added twice, or rows were delivered twice").With("extra", c.Rows-claimed)
	}
	want, err := Expect(ctx, c.Sequence, runs)
	if err != nil {
		return err
	}
	if want != c.Tally {
		return fail(status.DataLoss, "%d rows came for as many positions, %s, but not each with its record: their digest is %s, and must be %s",
			c.Rows, text(runs), c.Digest, want.Digest).
			WithHint("rows were delivered in the place of others, or by another order or seed")
	}
	return nil
}

// text shows where the claim begins, and how much more there is.
func text(runs []Run) string {
	switch len(runs) {
	case 0:
		return "none"
	case 1:
		return runs[0].String()
	}
	return fmt.Sprintf("%s and %d further runs", runs[0], len(runs)-1)
}
