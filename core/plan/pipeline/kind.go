package pipeline

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Kind is the name of a schedule.
type Kind string

const (
	// GPipe runs all forwards, then all backwards [Huang et al., arXiv 1811.06965].
	GPipe Kind = "gpipe"
	// OneFOneB alternates forward and backward, so that a stage keeps at most as many
	// micro-batches as there are stages from it to the last [Narayanan et al., arXiv
	// 2104.04473, section 2.2.1].
	OneFOneB Kind = "1f1b"
	// Interleaved is 1F1B with several chunks of layers per stage [arXiv 2104.04473,
	// section 2.2.2].
	Interleaved Kind = "interleaved"
	// ZeroBubble is the schedule ZB-H1: 1F1B with the weight gradients as tasks that
	// run later [Qi et al., arXiv 2401.10241, section 2.1].
	ZeroBubble Kind = "zero-bubble"
)

// Kinds lists the schedules.
func Kinds() []Kind { return []Kind{GPipe, OneFOneB, Interleaved, ZeroBubble} }

// Find returns the schedule of a name.
func Find(name string) (Kind, error) {
	if kind := Kind(name); slices.Contains(Kinds(), kind) {
		return kind, nil
	}
	return "", status.Errorf(status.InvalidArgument, "pipeline", "there is no schedule %s", wording.Quote(name)).
		WithHint("%s", wording.Suggest(name, Kinds()))
}

// Limits of a schedule.
const (
	MaxForwards = 1 << 20 // stages × micro-batches × chunks
	MaxDuration = 1 << 40 // ticks of one task
)

// Check returns an error if a schedule does not exist: a count below 1, chunks
// without Interleaved, micro-batches that Interleaved cannot group.
func Check(kind Kind, stages, micro, chunks int) error {
	if _, err := Find(string(kind)); err != nil {
		return err
	}
	for _, c := range []struct {
		noun string
		n    int
	}{{"stages", stages}, {"micro-batches", micro}, {"chunks", chunks}} {
		if c.n < 1 {
			return status.Errorf(status.InvalidArgument, "pipeline", "%s must be at least 1, not %d", c.noun, c.n)
		}
	}
	if err := checkSize(kind, stages, micro, chunks); err != nil {
		return err
	}
	switch {
	case kind != Interleaved && chunks > 1:
		return status.Errorf(status.InvalidArgument, "pipeline", "schedule %q has 1 chunk per stage, not %d", kind, chunks).
			WithHint("use schedule %q, or 1 chunk", Interleaved)
	case kind == Interleaved && chunks == 1:
		return status.Errorf(status.InvalidArgument, "pipeline", "schedule %q needs at least 2 chunks per stage", kind).
			WithHint("use 2 chunks or more, or schedule %q", OneFOneB)
	case kind == Interleaved && micro%stages != 0:
		return status.Errorf(status.InvalidArgument, "pipeline", "schedule %q needs a multiple of %d micro-batches (the stages), not %d", kind, stages, micro).
			WithHint("use %s micro-batches, or schedule %q", multiples(micro, stages), OneFOneB)
	}
	return nil
}

// checkSize returns an error if a schedule exceeds MaxForwards. Its hint names a number
// that makes the schedule possible if the others are small enough. An interleaved one
// has at least two chunks, and a multiple of the stages as micro-batches.
func checkSize(kind Kind, stages, micro, chunks int) error {
	mostStages, leastMicro, multiple := MaxForwards, 1, 1
	if kind == Interleaved {
		mostStages, leastMicro, multiple = int(math.Sqrt(MaxForwards/2)), stages, stages
	}
	var hint string
	switch {
	case stages > mostStages:
		hint = fmt.Sprintf("use at most %d stages", mostStages)
	case chunks > MaxForwards/stages/leastMicro:
		hint = fmt.Sprintf("use at most %d chunks", MaxForwards/stages/leastMicro)
	case micro > MaxForwards/stages/chunks:
		hint = fmt.Sprintf("use at most %d micro-batches", MaxForwards/stages/chunks/multiple*multiple)
	default:
		return nil
	}
	return status.Errorf(status.InvalidArgument, "pipeline", "%d stages × %d micro-batches × %d chunks exceed %s forwards", stages, micro, chunks, wording.Thousands(MaxForwards)).
		WithHint("%s", hint)
}

// multiples names the multiples of a number next to n.
func multiples(n, of int) string {
	if n < of {
		return strconv.Itoa(of)
	}
	return fmt.Sprintf("%d or %d", n/of*of, (n/of+1)*of)
}
