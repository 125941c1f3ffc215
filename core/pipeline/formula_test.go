package pipeline_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/pipeline"
)

// schedules calls do with every schedule of up to 16 stages, 64 micro-batches and 4
// chunks.
func schedules(do func(kind pipeline.Kind, p, m, v int)) {
	for _, kind := range pipeline.Kinds() {
		for p := 1; p <= 16; p++ {
			for m := 1; m <= 64; m++ {
				for v := 1; v <= 4; v++ {
					if pipeline.Check(kind, p, m, v) == nil {
						do(kind, p, m, v)
					}
				}
			}
		}
	}
}

func build(t *testing.T, kind pipeline.Kind, p, m, v int, d pipeline.Durations) *pipeline.Timeline {
	t.Helper()
	line, err := pipeline.Build(kind, p, m, v, d)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// The closed forms agree with the timelines.
func TestFormulasAgreeWithTimelines(t *testing.T) {
	schedules(func(kind pipeline.Kind, p, m, v int) {
		line := build(t, kind, p, m, v, pipeline.Even(p*v, 1, 1, 1))
		idle, total := line.Bubble()
		num, den := pipeline.BubbleShare(kind, p, m, v)
		if idle*den != num*total {
			t.Errorf("%s p=%d m=%d v=%d: idle %d of %d, formula %d/%d", kind, p, m, v, idle, total, num, den)
		}
		for s := range p {
			if got, want := line.PeakLive(s), pipeline.LiveFormula(kind, s, p, m, v); got != want {
				t.Errorf("%s p=%d m=%d v=%d: stage %d keeps %d, formula %d", kind, p, m, v, s, got, want)
			}
		}
	})
}
