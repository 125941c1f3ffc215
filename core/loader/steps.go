package loader

import (
	"math"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
)

// grid divides an epoch into steps. It is pure arithmetic on metadata, so every
// process computes the same steps.
type grid struct {
	records   int64  // records in an epoch
	batch     int64  // rows of the global batch
	remainder string // layout.Drop, Pad or Refuse
}

// steps returns the number of steps from a position to the end of the epoch. A
// batch may start at any position, not only at multiples of the batch size.
func (g grid) steps(position int64) int64 {
	left := g.records - position
	n := left / g.batch
	if g.remainder == layout.Pad && left%g.batch != 0 {
		n++
	}
	return n
}

// normalize returns the cursor itself, or the start of the next epoch if no step
// begins at the cursor. So no loop is empty, and a dropped remainder is never
// delivered.
func (g grid) normalize(c batch.Cursor) batch.Cursor {
	if c.Position > 0 && g.steps(c.Position) == 0 {
		return batch.Cursor{Epoch: c.Epoch + 1}
	}
	return c
}

// stepAt returns the step that starts at a normalized cursor.
func (g grid) stepAt(c batch.Cursor) batch.Step {
	valid := min(g.batch, g.records-c.Position)
	return batch.Step{
		Cursor: c,
		Index:  c.Position / g.batch,
		Valid:  valid,
		After:  g.normalize(batch.Cursor{Epoch: c.Epoch, Position: c.Position + valid}),
	}
}

// check returns an error if no run can continue at a cursor.
func (g grid) check(c batch.Cursor) error {
	if c.Epoch < 0 || c.Epoch > maxEpoch {
		return fail(status.OutOfRange, "epoch %d is outside 0…2^53", c.Epoch).With("epoch", c.Epoch)
	}
	if c.Position < 0 || c.Position > g.records {
		return fail(status.OutOfRange, "position %d is outside the epoch of %d records", c.Position, g.records).
			With("position", c.Position).With("records", g.records)
	}
	if left := g.records - c.Position; g.remainder == layout.Refuse && left%g.batch != 0 {
		return fail(status.InvalidArgument, `position %d leaves %d of %d records, and %d %% %d = %d, but the remainder is "error"`,
			c.Position, left, g.records, left, g.batch, left%g.batch).
			WithHint(`continue at a multiple of the batch size, or with remainder "drop" or "pad"`).
			With("position", c.Position).With("batch", g.batch)
	}
	return nil
}

// length returns the number of batches of a loop that starts at a normalized
// cursor, or -1 if the loop has no end. The number is at most math.MaxInt64. The
// parameter until is Options.Epochs.
func (g grid) length(c batch.Cursor, until int64) int64 {
	switch {
	case until < 0:
		return -1
	case until == 0:
		return g.steps(c.Position)
	case c.Epoch >= until:
		return 0
	}
	rest, epochs, each := g.steps(c.Position), until-1-c.Epoch, g.steps(0)
	if epochs > (math.MaxInt64-rest)/each {
		return math.MaxInt64
	}
	return rest + epochs*each
}

// checkEpoch returns an error if an epoch has no step, or has a remainder although
// remainders are errors.
func (g grid) checkEpoch() error {
	switch {
	case g.steps(0) == 0:
		return fail(status.InvalidArgument, "an epoch of %d records has no step of %d", g.records, g.batch).
			WithHint("%s", g.noStepHint()).With("records", g.records).With("batch", g.batch)
	case g.remainder == layout.Refuse && g.records%g.batch != 0:
		return fail(status.InvalidArgument, `%d records do not divide into steps of %d (%d are left), but the remainder is "error"`,
			g.records, g.batch, g.records%g.batch).
			WithHint(`choose a batch size that divides, or remainder "drop" or "pad"`).With("records", g.records).With("batch", g.batch)
	}
	return nil
}

func (g grid) noStepHint() string {
	if g.records == 0 {
		return "the dataset is empty"
	}
	return `use a smaller batch, or remainder "pad"`
}
