package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/tests/random"
)

// draw returns the row of each stage, with a letter per tick: "F" for forward, "B"
// for backward, "W" for the weight gradient, "." for idle.
func draw(line *pipeline.Timeline) string {
	var rows []string
	for _, tasks := range line.Tasks {
		row := []byte(strings.Repeat(".", int(line.Span)))
		for _, task := range tasks {
			for tick := task.Start; tick < task.End; tick++ {
				row[tick] = task.Work.String()[0]
			}
		}
		rows = append(rows, string(row))
	}
	return strings.Join(rows, "\n")
}

func TestTimelines(t *testing.T) {
	for _, c := range []struct {
		kind                    pipeline.Kind
		p, m, v                 int
		forward, backward, last int64
		want                    string
	}{
		{pipeline.GPipe, 3, 4, 1, 1, 1, 0, `
FFFF....BBBB
.FFFF..BBBB.
..FFFFBBBB..`},
		{pipeline.OneFOneB, 3, 4, 1, 1, 1, 0, `
FFF..BFB.B.B
.FF.BFBFB.B.
..FBFBFBFB..`},
		{pipeline.Interleaved, 2, 2, 2, 1, 1, 0, `
FFFF.B.BBB
.FFFBFBBB.`},
		{pipeline.ZeroBubble, 3, 3, 1, 1, 1, 1, `
FFF..BWBWBW
.FF.BFBWBWW
..FBFBFBWWW`},
	} {
		line := build(t, c.kind, c.p, c.m, c.v, pipeline.Even(c.p*c.v, c.forward, c.backward, c.last))
		if got := "\n" + draw(line); got != c.want {
			t.Errorf("%s, p=%d, m=%d, v=%d:%s\nwant%s", c.kind, c.p, c.m, c.v, got, c.want)
		}
	}
}

// GPipe runs backwards in the reverse order of forwards [arXiv 1811.06965, figure 2].
func TestGPipeRunsBackwardsInReverse(t *testing.T) {
	var order []int
	for _, task := range build(t, pipeline.GPipe, 2, 3, 1, pipeline.Even(2, 1, 1, 1)).Tasks[0] {
		order = append(order, task.Micro)
	}
	if want := []int{0, 1, 2, 2, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("micro-batches %v, want %v", order, want)
	}
}

// drawn returns a random schedule with random durations of each part.
func drawn(r *rand.Rand) (kind pipeline.Kind, p, m, v int, d pipeline.Durations) {
	kind, p, m, v = random.One(r, pipeline.Kinds()...), 1+r.IntN(9), 1+r.IntN(30), 1
	if kind == pipeline.Interleaved {
		m, v = p*(1+r.IntN(5)), 2+r.IntN(3)
	}
	d = pipeline.Even(p*v, 0, 0, 0)
	for i := range p * v {
		d.Forward[i], d.Backward[i], d.Weight[i] = 1+r.Int64N(20), 1+r.Int64N(20), r.Int64N(20)
	}
	return kind, p, m, v, d
}

func sum(ticks ...[]int64) (total int64) {
	for _, t := range ticks {
		for _, n := range t {
			total += n
		}
	}
	return total
}

// Timelines of uneven parts are valid, keep as many activations as even ones, and
// take at least as long as their fullest stage and as one micro-batch.
func TestUnevenParts(t *testing.T) {
	random.Rounds(t, 300, 20_000, func(t *testing.T, r *rand.Rand) {
		kind, p, m, v, d := drawn(r)
		line := build(t, kind, p, m, v, d)
		if err := line.Check(); err != nil {
			t.Fatal(err)
		}
		var work int64
		for s := range p {
			if got, want := line.PeakLive(s), pipeline.LiveFormula(kind, s, p, m, v); got != want {
				t.Errorf("stage %d keeps %d, want %d", s, got, want)
			}
			var stage int64
			for part := s; part < p*v; part += p {
				stage += int64(m) * (d.Forward[part] + d.Backward[part] + d.Weight[part])
			}
			if least := sum(d.Forward[:s]) + stage; line.Span < least {
				t.Errorf("the span is %d, but stage %d begins at tick %d at the earliest and has %d ticks of work", line.Span, s, least-stage, stage)
			}
			work += stage
		}
		if idle, total := line.Bubble(); total-idle != work || total != int64(p)*line.Span {
			t.Errorf("bubble %d of %d, with %d stages of %d ticks and %d ticks of work", idle, total, p, line.Span, work)
		}
		checkSpan(t, line, d)
	})
}

// The part with the logits is longer than the others. The span is then the work of the
// last stage, and a share of the time that the other stages take for one micro-batch. The
// share is 1 with GPipe and 1F1B, 1/v with v chunks, and 1/3 with ZeroBubble. The planner
// computes the bubble of uneven stages by this form.
func TestLongerLastPart(t *testing.T) {
	schedules(func(kind pipeline.Kind, p, m, v int) {
		if kind == pipeline.ZeroBubble && m < p || m > 32 {
			return
		}
		for _, extra := range []int64{1, 5, 20} {
			d, last := pipeline.Even(p*v, 10, 10, 10), p*v-1
			d.Forward[last], d.Backward[last], d.Weight[last] = 10+extra, 10+extra, 10+extra
			share := int64(v)
			if kind == pipeline.ZeroBubble {
				share = 3
			}
			want := int64(m)*(30*int64(v)+3*extra) + int64(p-1)*30*int64(v)/share
			if line := build(t, kind, p, m, v, d); line.Span != want {
				t.Errorf("%s, p=%d, m=%d, v=%d: the last part is %d ticks longer, and the span %d, want %d", kind, p, m, v, extra, line.Span, want)
			}
		}
	})
}

// checkSpan compares the span with forms for uneven parts. GPipe is two flow shops of
// equal jobs. 1F1B takes at most as long. No schedule takes longer than with all
// parts as long as the longest.
func checkSpan(t *testing.T, line *pipeline.Timeline, d pipeline.Durations) {
	backward := make([]int64, len(d.Backward))
	for i := range backward {
		backward[i] = d.Backward[i] + d.Weight[i]
	}
	flow := sum(d.Forward, backward) + int64(line.Micro-1)*(slices.Max(d.Forward)+slices.Max(backward))
	if line.Kind == pipeline.GPipe && line.Span != flow || line.Kind == pipeline.OneFOneB && line.Span > flow {
		t.Errorf("%s takes %d ticks, but two flow shops %d", line.Kind, line.Span, flow)
	}
	longest := pipeline.Even(len(backward), slices.Max(d.Forward), slices.Max(d.Backward), slices.Max(d.Weight))
	if even := build(t, line.Kind, line.Stages, line.Micro, line.Chunks, longest); line.Span > even.Span {
		t.Errorf("%s takes %d ticks, but only %d with longer parts", line.Kind, line.Span, even.Span)
	}
}

// The checker finds every fault that a timeline can have.
func TestCheckFindsFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(line *pipeline.Timeline)
		want   string
	}{
		{"overlap", func(l *pipeline.Timeline) { shift(l.Tasks[1][2:3], -1) },
			"F of micro-batch 1, chunk 0, stage 1 begins at 5, before B of micro-batch 0, chunk 0, stage 1 ends at 6"},
		{"early forward", func(l *pipeline.Timeline) { shift(l.Tasks[1][0:1], -1) },
			"F of micro-batch 0, chunk 0, stage 1 begins at 1, but needs F of micro-batch 0, chunk 0, stage 0, which ends at 2"},
		{"early backward", func(l *pipeline.Timeline) { shift(l.Tasks[0][2:3], -1) },
			"B of micro-batch 0, chunk 0, stage 0 begins at 5, but needs B of micro-batch 0, chunk 0, stage 1, which ends at 6"},
		{"backward first", func(l *pipeline.Timeline) { shift(l.Tasks[1][4:5], 2); shift(l.Tasks[1][5:6], -2) },
			"B of micro-batch 2, chunk 0, stage 1 begins at 10, but needs F of micro-batch 2, chunk 0, stage 1, which ends at 14"},
		{"missing", func(l *pipeline.Timeline) { l.Tasks[0] = l.Tasks[0][1:] }, "the timeline has 11 tasks, not 12"},
		{"twice", func(l *pipeline.Timeline) { l.Tasks[1][4].Micro = 1 }, "F of micro-batch 1, chunk 0, stage 1 comes twice"},
		{"length", func(l *pipeline.Timeline) { l.Tasks[0][0].End = 1 }, "F of micro-batch 0, chunk 0, stage 0 takes 1 ticks, not 2"},
		{"before the start", func(l *pipeline.Timeline) { shift(l.Tasks[0][0:1], -1) },
			"F of micro-batch 0, chunk 0, stage 0 from -1 to 1 is outside the span of 16 ticks"},
		{"after the end", func(l *pipeline.Timeline) { shift(l.Tasks[0][5:], 1) },
			"B of micro-batch 2, chunk 0, stage 0 from 15 to 17 is outside the span of 16 ticks"},
		{"other stage", func(l *pipeline.Timeline) { l.Tasks[0][0].Stage = 1 },
			"F of micro-batch 0, chunk 0, stage 1 is among the tasks of stage 0"},
		{"no such micro-batch", func(l *pipeline.Timeline) { l.Tasks[0][0].Micro = 3 },
			`F of micro-batch 3, chunk 0, stage 0 does not exist in 3 micro-batches and 1 chunk of schedule "1f1b"`},
		{"no such work", func(l *pipeline.Timeline) { l.Tasks[0][0].Work = pipeline.Weight },
			`W of micro-batch 0, chunk 0, stage 0 does not exist in 3 micro-batches and 1 chunk of schedule "1f1b"`},
		{"no such stage", func(l *pipeline.Timeline) { l.Tasks = append(l.Tasks, nil) }, "the timeline has 3 stages, not 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := build(t, pipeline.OneFOneB, 2, 3, 1, pipeline.Even(2, 2, 2, 0))
			c.damage(line)
			if got, want := fmt.Sprint(line.Check()), "pipeline: "+c.want; got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

func shift(tasks []pipeline.Task, ticks int64) {
	for i := range tasks {
		tasks[i].Start += ticks
		tasks[i].End += ticks
	}
}

// A random change of one task makes a timeline without idle time impossible.
func TestCheckFindsRandomFaults(t *testing.T) {
	r := random.New(t)
	for range 500 {
		kind, p, m, v, d := drawn(r)
		line := build(t, kind, p, m, v, d)
		tasks := line.Tasks[r.IntN(p)]
		i := r.IntN(len(tasks))
		task, most := &tasks[i], int64(3)
		if i > 0 {
			most = min(most, tasks[i-1].End-tasks[i-1].Start) // before the previous task there may be space for this one
		}
		if most == 0 {
			continue
		}
		task.Start -= 1 + r.Int64N(most)
		task.End = task.Start + random.One(r, task.End-task.Start, 1, 50)
		if line.Check() == nil {
			t.Fatalf("%s, p=%d, m=%d, v=%d, %v: a task that begins earlier is not found: %s from %d to %d", kind, p, m, v, d, task, task.Start, task.End)
		}
	}
}

func TestBadSchedules(t *testing.T) {
	even := pipeline.Even(4, 1, 1, 1)
	short, long, none := pipeline.Even(3, 1, 1, 1), pipeline.Even(4, 1, 1, 1<<40+1), pipeline.Even(4, 1, 0, 1)
	for _, c := range []struct {
		kind    pipeline.Kind
		p, m, v int
		d       pipeline.Durations
		want    string
	}{
		{"pipedream", 4, 8, 1, even, `there is no schedule "pipedream"; use one of "gpipe", "1f1b", "interleaved", "zero-bubble"`},
		{pipeline.GPipe, 0, 8, 1, even, "stages must be at least 1, not 0"},
		{pipeline.GPipe, 4, -1, 1, even, "micro-batches must be at least 1, not -1"},
		{pipeline.Interleaved, 4, 8, 0, even, "chunks must be at least 1, not 0"},
		{pipeline.OneFOneB, 4, 8, 2, even, `schedule "1f1b" has 1 chunk per stage, not 2; use schedule "interleaved", or 1 chunk`},
		{pipeline.Interleaved, 4, 8, 1, even, `schedule "interleaved" needs at least 2 chunks per stage; use 2 chunks or more, or schedule "1f1b"`},
		{pipeline.Interleaved, 4, 10, 2, even, `schedule "interleaved" needs a multiple of 4 micro-batches (the stages), not 10; use 8 or 12 micro-batches, or schedule "1f1b"`},
		{pipeline.Interleaved, 4, 3, 2, even, `schedule "interleaved" needs a multiple of 4 micro-batches (the stages), not 3; use 4 micro-batches, or schedule "1f1b"`},
		{pipeline.GPipe, 1 << 10, 1<<10 + 1, 1, even, "1024 stages × 1025 micro-batches × 1 chunks exceed 1,048,576 forwards; use at most 1024 micro-batches"},
		{pipeline.GPipe, 1 << 62, 1 << 62, 1, even, "4611686018427387904 stages × 4611686018427387904 micro-batches × 1 chunks exceed 1,048,576 forwards; use at most 1048576 stages"},
		{pipeline.Interleaved, 1 << 20, 1 << 20, 2, even, "1048576 stages × 1048576 micro-batches × 2 chunks exceed 1,048,576 forwards; use at most 724 stages"},
		{pipeline.Interleaved, 512, 1 << 20, 8, even, "512 stages × 1048576 micro-batches × 8 chunks exceed 1,048,576 forwards; use at most 4 chunks"},
		{pipeline.Interleaved, 500, 5000, 2, even, "500 stages × 5000 micro-batches × 2 chunks exceed 1,048,576 forwards; use at most 1000 micro-batches"},
		{pipeline.GPipe, 4, 8, 1, short, "durations F have 3 parts, not 4 (stages × chunks)"},
		{pipeline.GPipe, 4, 8, 1, long, "duration W of part 0 must be from 0 to 1,099,511,627,776 ticks, not 1099511627777"},
		{pipeline.GPipe, 4, 8, 1, none, "duration B of part 0 must be from 1 to 1,099,511,627,776 ticks, not 0"},
	} {
		if _, err := pipeline.Build(c.kind, c.p, c.m, c.v, c.d); fmt.Sprint(err) != "pipeline: "+c.want {
			t.Errorf("%v\nwant pipeline: %s", err, c.want)
		}
	}
}

// The largest schedules are built without overflow.
func TestLargestSchedules(t *testing.T) {
	for _, c := range [][2]int{{1 << 20, 1}, {1, 1 << 20}} {
		line := build(t, pipeline.ZeroBubble, c[0], c[1], 1, pipeline.Even(c[0], pipeline.MaxDuration, pipeline.MaxDuration, pipeline.MaxDuration))
		if _, ticks := pipeline.BubbleShare(pipeline.ZeroBubble, c[0], c[1], 1); line.Span/pipeline.MaxDuration != ticks {
			t.Errorf("p=%d, m=%d: the span is %d ticks", c[0], c[1], line.Span)
		}
	}
}
