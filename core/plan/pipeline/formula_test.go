package pipeline_test

import (
	"math/big"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/pipeline"
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

func TestFormulasAgreeWithTimelines(t *testing.T) {
	compared := map[pipeline.Kind]int{}
	schedules(func(kind pipeline.Kind, p, m, v int) {
		compared[kind]++
		line := build(t, kind, p, m, v, pipeline.Even(p*v, 1, 1, 1))
		idle, total := line.Bubble()
		num, den := pipeline.BubbleShare(kind, p, m, v)
		if idle*den != num*total {
			t.Errorf("%s, p=%d, m=%d, v=%d: %d of %d ticks are idle, but the formula is %d/%d", kind, p, m, v, idle, total, num, den)
		}
		for s := range p {
			if got, want := line.PeakLive(s), pipeline.LiveFormula(kind, s, p, m, v); got != want {
				t.Errorf("%s, p=%d, m=%d, v=%d: stage %d keeps %d, but the formula is %d", kind, p, m, v, s, got, want)
			}
		}
	})
	want := map[pipeline.Kind]int{pipeline.GPipe: 1024, pipeline.OneFOneB: 1024, pipeline.ZeroBubble: 1024, pipeline.Interleaved: 3 * 211}
	for kind, n := range want {
		if compared[kind] != n {
			t.Errorf("%s: compared %d schedules, not %d", kind, compared[kind], n)
		}
	}
}

// The share of the bubble does not depend on how long a backward takes compared with
// a forward, except with ZeroBubble. Its idle ticks are (p-1)(F+B-W) if m ≥ p and no
// weight gradient takes longer than a forward [arXiv 2401.10241, table 2].
func TestBubbleForAnyRatioOfBackwardToForward(t *testing.T) {
	schedules(func(kind pipeline.Kind, p, m, v int) {
		if m > 24 || v > 2 || kind == pipeline.ZeroBubble && m < p {
			return
		}
		for _, d := range [][3]int64{{1, 2, 0}, {3, 1, 1}, {10, 11, 9}, {10, 14, 10}, {9, 12, 3}} {
			line := build(t, kind, p, m, v, pipeline.Even(p*v, d[0], d[1], d[2]))
			idle, total := line.Bubble()
			num, den := pipeline.BubbleShare(kind, p, m, v)
			if kind == pipeline.ZeroBubble {
				num = int64(p-1) * (d[0] + d[1] - d[2])
				den = int64(m)*(d[0]+d[1]+d[2]) + num
			}
			if idle*den != num*total {
				t.Errorf("%s, p=%d, m=%d, v=%d, durations %v: %d of %d ticks are idle, but the formula is %d/%d", kind, p, m, v, d, idle, total, num, den)
			}
		}
	})
}

// Efficiencies of published configurations.
func TestPublishedEfficiencies(t *testing.T) {
	for _, c := range []struct {
		p, m int
		want string
	}{
		{4, 8, "0.727"},    // the timeline of a common text
		{16, 24, "0.615"},  // GPT-3 on 8,192 GPUs: tensor 8, pipeline 16, data 64, batch 1536
		{16, 192, "0.928"}, // GPT-3 on 1,024 GPUs: tensor 8, pipeline 16, data 8, batch 1536 [Megatron-LM, README]
		{6, 3, "0.375"},    // fewer micro-batches than stages
		{8, 4, "0.364"},    // here the formula (m-p+1)/m of a common text is negative
	} {
		num, den := pipeline.BubbleShare(pipeline.OneFOneB, c.p, c.m, 1)
		if got := big.NewRat(den-num, den).FloatString(3); got != c.want {
			t.Errorf("p=%d, m=%d: efficiency %s, want %s", c.p, c.m, got, c.want)
		}
	}
}

// GPipe calls the bubble negligible for m ≥ 4p [arXiv 1811.06965, section 2.3]: it is
// less than a fifth.
func TestBubbleOfGPipeFromFourTimesTheStages(t *testing.T) {
	for p := 1; p <= 1024; p++ {
		if num, den := pipeline.BubbleShare(pipeline.GPipe, p, 4*p, 1); 5*num >= den {
			t.Errorf("p=%d, m=%d: the bubble is %d/%d", p, 4*p, num, den)
		}
	}
}

// Korthikanti's factor of the interleaved schedule, 1 + (p-1)/(p·v): the first stage
// keeps p·v chunks times the factor [arXiv 2205.05198, section 4.2.3].
func TestLiveChunksOfInterleaved(t *testing.T) {
	for p := 1; p <= 64; p++ {
		for v := 2; v <= 8; v++ {
			want := new(big.Rat).Mul(big.NewRat(int64(p*v), 1), new(big.Rat).Add(big.NewRat(1, 1), big.NewRat(int64(p-1), int64(p*v))))
			if got := pipeline.LiveFormula(pipeline.Interleaved, 0, p, 4*p, v); want.Cmp(big.NewRat(int64(got), 1)) != 0 {
				t.Errorf("p=%d, v=%d: %d chunks, want %s", p, v, got, want)
			}
		}
	}
}
