package certificate

import (
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// Check checks every position from the first of epoch 0 to the last one delivered.
// All processes of a mesh must have delivered the position exactly once, with its
// record, unless it was dropped or skipped. Otherwise, the error is DataLoss and lists
// what is missing, what came more than once, and what to do. Check needs about 15
// nanoseconds per position. If ctx ends, it fails with Cancelled.
func (c Certificate) Check(ctx context.Context) error { return c.Covers(ctx, Cursor{}, c.Last()) }

// Covers checks the positions from one cursor to another, as [Certificate.Check]
// does. For example, Cursor{} to Cursor{Epoch: 3} are three whole epochs. It ignores
// other positions, except that it can check the evidence of a run only as a whole.
func (c Certificate) Covers(ctx context.Context, first, last Cursor) error {
	if err := c.checkRange(first, last); err != nil {
		return err
	}
	coverage, err := c.Coverage(first, last)
	if err != nil {
		return err
	}
	if err := coverage.check(); err != nil {
		return err
	}
	return c.checkEvidence(ctx, through(first, last, c.Records))
}

// checkRange refuses cursors outside the epochs, and ranges without a position.
func (c Certificate) checkRange(first, last Cursor) error {
	for _, p := range []Cursor{first, last} {
		if p.Epoch < 0 || p.Epoch > maxCount || p.Position < 0 || p.Position > c.Records {
			return fail(status.OutOfRange, "%s is outside of epochs of %d records", p, c.Records)
		}
	}
	if c.Last() != (Cursor{}) && len(through(first, last, c.Records)) == 0 {
		return fail(status.InvalidArgument, "there are no positions from %s to %s", first, last).
			WithHint("the last one is the cursor after the last position")
	}
	return nil
}

// checkEvidence compares the evidence of every run that has wanted positions with the
// evidence that order and seed determine. If runs lack some processes, it adds up the runs
// on the same mesh: the coverage has shown that together they are complete.
func (c Certificate) checkEvidence(ctx context.Context, wanted []Span) error {
	var rest [][]Run
	reached := c.reached(wanted)
	for i, r := range c.runs {
		switch {
		case !reached[i]:
		case r.whole():
			if err := c.compare(ctx, r.Delivered, &r); err != nil {
				return err
			}
		default:
			n := slices.IndexFunc(rest, func(runs []Run) bool { return runs[0].sameKind(&r) })
			if n < 0 {
				n, rest = len(rest), append(rest, nil)
			}
			rest[n] = append(rest[n], r)
		}
	}
	for _, runs := range rest {
		sum := Run{Parts: runs[0].Parts}
		for _, r := range runs {
			sum.Delivered, sum.Evidence = append(sum.Delivered, r.Delivered...), sum.Plus(r.Evidence)
		}
		spans, err := union(sum.Delivered)
		if err != nil {
			return err
		}
		if err := c.compare(ctx, spans, &sum); err != nil {
			return err
		}
	}
	return nil
}

// compare checks that a run has the evidence of the given positions.
func (c Certificate) compare(ctx context.Context, spans []Span, r *Run) error {
	n, ok := positions(spans)
	if !ok || (n > 0 && r.Parts > maxCount/n) {
		return fail(status.ResourceExhausted, "more than 2^53 rows cannot be checked")
	}
	switch expected := n * r.Parts; {
	case r.Rows < expected:
		return fail(status.DataLoss, "%d of %d rows are missing, of positions %s%s", expected-r.Rows, expected, list(spans), r.inParts()).
			WithHint("rows were lost on their way into batches; please report it").With("missing", expected-r.Rows)
	case r.Rows > expected:
		return fail(status.DataLoss, "%d rows came for %d, of positions %s%s", r.Rows, expected, list(spans), r.inParts()).
			WithHint("rows came twice in batches; please report it").With("extra", r.Rows-expected)
	}
	weight, err := weightOf(ctx, r.Parts)
	if err != nil {
		return err
	}
	order, err := c.sampler()
	if err != nil {
		return err
	}
	want, err := Expect(ctx, order, spans)
	if err != nil {
		return err
	}
	if want = want.Times(weight); want != r.Evidence {
		return fail(status.DataLoss, "%d rows came for as many, of positions %s%s, but not each with its record: their digest is %s, and must be %s",
			r.Rows, list(spans), r.inParts(), r.Digest, want.Digest).
			WithHint("rows were delivered in the place of others, or by another order or seed")
	}
	return nil
}

// inParts returns how many parts a row has, or "" if it has one.
func (r *Run) inParts() string {
	if r.Parts == 1 {
		return ""
	}
	return " in " + counted(r.Parts, "part") + " each"
}

// weightOf adds up the weights of the parts from 0 to parts-1.
func weightOf(ctx context.Context, parts int64) (w Weight, err error) {
	for n := range parts {
		if n%4096 == 0 && ctx.Err() != nil {
			return w, cancelled(ctx)
		}
		w = w.Plus(WeightOf(n))
	}
	return w, nil
}

func cancelled(ctx context.Context) error {
	return fail(status.Cancelled, "the check was cancelled: %w", context.Cause(ctx))
}

// Expect computes the evidence of the positions of spans from their order: the
// evidence that all processes together must have for one part of every row. It needs
// about 15 nanoseconds per position. If ctx ends, it fails with Cancelled.
func Expect(ctx context.Context, order sampler.Order, spans []Span) (Evidence, error) {
	var all Evidence
	for _, s := range spans {
		for epoch := s.Epoch; epoch < s.Epoch+s.Epochs; epoch++ {
			some, err := expect(ctx, order.Epoch(epoch), EpochOf(epoch), s.First, s.Last)
			if err != nil {
				return Evidence{}, err
			}
			all = all.Plus(some)
		}
	}
	return all, nil
}

// expect computes the evidence of positions [first, last) of one epoch.
func expect(ctx context.Context, order sampler.Epoch, key Epoch, first, last int64) (all Evidence, err error) {
	var buffer [4096]int64
	for ; first < last; first += int64(len(buffer)) {
		if ctx.Err() != nil {
			return all, cancelled(ctx)
		}
		records := buffer[:min(last-first, int64(len(buffer)))]
		order.Fill(records, first)
		all = all.Plus(key.Count(first, records))
	}
	return all, nil
}
