package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/status"
)

// skip describes steps to leave out: their positions, and the remainders of epochs
// that end within them.
type skip struct {
	skipped, dropped []certificate.Span
	to               batch.Cursor // after them
}

// skip returns the positions of n steps from a normalized cursor (see normalize),
// and the cursor after them. Remainders of epochs that fill no step count as
// dropped. Until is Options.Epochs.
func (g grid) skip(c batch.Cursor, n, until int64) (s skip, err error) {
	if err := g.checkSkip(c, n, until); err != nil {
		return s, err
	}
	s.to = c
	rest, each := g.steps(c.Position), g.steps(0)
	first := min(n, rest)
	n -= first
	s.add(g, 1, first)
	s.add(g, n/each, each)
	s.add(g, 1, n%each)
	return s, nil
}

func (g grid) checkSkip(c batch.Cursor, n, until int64) error {
	switch left := g.length(c, until); {
	case n < 0:
		return fail(status.OutOfRange, "%d steps cannot be skipped", n).WithHint("give a number from 0; seek goes back")
	case until > 0 && n > left:
		return fail(status.OutOfRange, "%d steps cannot be skipped: %d are left of %d epochs", n, left, until).
			With("steps", n).With("left", left)
	case n/g.steps(0) > maxEpoch-c.Epoch-1:
		return fail(status.OutOfRange, "%d steps lead beyond epoch %d", n, int64(maxEpoch))
	}
	return nil
}

// add leaves out the given number of steps in each of the given number of epochs,
// beginning at the cursor s.to.
func (s *skip) add(g grid, epochs, steps int64) {
	if epochs == 0 || steps == 0 {
		return
	}
	span := certificate.Span{Epoch: s.to.Epoch, Epochs: epochs, First: s.to.Position, Last: min(s.to.Position+steps*g.batch, g.records)}
	s.skipped = append(s.skipped, span)
	s.to.Position = span.Last
	if g.steps(span.Last) == 0 {
		span.First, span.Last = span.Last, g.records
		s.dropped = append(s.dropped, span)
		s.to = batch.Cursor{Epoch: s.to.Epoch + epochs}
	}
}
