package pipeline

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Work is the kind of a task.
type Work uint8

// The kinds of tasks. Their letters are F, B and W.
const (
	Forward Work = iota
	Backward
	Weight
)

// String returns the letter of the kind.
func (w Work) String() string { return "FBW?"[min(w, 3):][:1] }

// Task is the forward or backward work of a stage for one micro-batch in one chunk, from
// tick Start to tick End.
type Task struct {
	Stage, Chunk, Micro int
	Work                Work
	Start, End          int64
}

// String names the task: "F of micro-batch 3, chunk 0, stage 1".
func (t Task) String() string {
	return fmt.Sprintf("%s of micro-batch %d, chunk %d, stage %d", t.Work, t.Micro, t.Chunk, t.Stage)
}

// Durations has the ticks of the tasks of each part. Part chunk × stages + stage is
// the chunk of a stage. The forms of the literature assume equal parts; the
// embedding and the logits make the first and the last part longer.
type Durations struct {
	Forward  []int64
	Backward []int64 // gradient of the inputs
	Weight   []int64 // gradient of the weights
}

// Even returns the durations of equal parts.
func Even(parts int, forward, backward, weight int64) Durations {
	d := Durations{make([]int64, parts), make([]int64, parts), make([]int64, parts)}
	for i := range parts {
		d.Forward[i], d.Backward[i], d.Weight[i] = forward, backward, weight
	}
	return d
}

// check returns an error if a duration is missing or out of range.
func (d Durations) check(parts int) error {
	for _, c := range []struct {
		work  Work
		ticks []int64
		least int64
	}{{Forward, d.Forward, 1}, {Backward, d.Backward, 1}, {Weight, d.Weight, 0}} {
		if len(c.ticks) != parts {
			return status.Errorf(status.InvalidArgument, "pipeline", "durations %s have %d parts, not %d (stages × chunks)", c.work, len(c.ticks), parts)
		}
		for i, n := range c.ticks {
			if n < c.least || n > MaxDuration {
				return status.Errorf(status.InvalidArgument, "pipeline", "duration %s of part %d must be from %d to %s ticks, not %d", c.work, i, c.least, wording.Thousands(MaxDuration), n)
			}
		}
	}
	return nil
}

// ticks returns the duration of a task. Only ZeroBubble has weight gradients apart.
func (d Durations) ticks(kind Kind, work Work, part int) int64 {
	switch {
	case work == Forward:
		return d.Forward[part]
	case work == Weight:
		return d.Weight[part]
	case kind == ZeroBubble:
		return d.Backward[part]
	}
	return d.Backward[part] + d.Weight[part]
}

// Timeline is a schedule with the times of its tasks.
type Timeline struct {
	Kind                  Kind
	Stages, Micro, Chunks int
	Durations             Durations
	Tasks                 [][]Task // tasks of each stage, in the order of time
	Span                  int64    // ticks from the first start to the last end
}

// Build makes the timeline of a schedule: each stage runs its tasks in the order of
// the schedule, each as early as its dependencies allow. Transfers between stages
// take no time.
func Build(kind Kind, stages, micro, chunks int, d Durations) (*Timeline, error) {
	if err := Check(kind, stages, micro, chunks); err != nil {
		return nil, err
	}
	if err := d.check(stages * chunks); err != nil {
		return nil, err
	}
	t := &Timeline{Kind: kind, Stages: stages, Micro: micro, Chunks: chunks, Durations: d, Tasks: make([][]Task, stages)}
	ends := newEnds(stages*chunks, micro)
	orders := make([][]step, stages)
	for s := range orders {
		orders[s] = order(kind, s, stages, micro, chunks)
		t.Tasks[s] = make([]Task, 0, len(orders[s]))
	}
	// A stage depends on its neighbors only. After a stage advances, only its neighbors
	// are tried again. With chunks, the first and the last stage are neighbors, too.
	waiting := make([]int, stages)
	for s := range waiting {
		waiting[s] = stages - 1 - s
	}
	for len(waiting) > 0 {
		s := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if t.advance(s, orders[s], ends) {
			waiting = append(waiting, (s+stages-1)%stages, (s+1)%stages)
		}
	}
	for s, tasks := range t.Tasks {
		if len(tasks) < len(orders[s]) {
			return nil, status.Errorf(status.Internal, "pipeline", "stage %d waits forever in schedule %q of %d stages, %d micro-batches and %d chunks", s, kind, stages, micro, chunks)
		}
		t.Span = max(t.Span, tasks[len(tasks)-1].End)
	}
	return t, nil
}

// advance runs the next tasks of a stage if their dependencies have ended, and reports
// whether it ran any.
func (t *Timeline) advance(stage int, steps []step, ends ends) (progress bool) {
	now := int64(0)
	if done := len(t.Tasks[stage]); done > 0 {
		now = t.Tasks[stage][done-1].End
	}
	for _, s := range steps[len(t.Tasks[stage]):] {
		part := s.chunk*t.Stages + stage
		ready := ends.ready(s.work, part, s.micro)
		if ready < 0 {
			break
		}
		start := max(now, ready)
		now = start + t.Durations.ticks(t.Kind, s.work, part)
		t.Tasks[stage] = append(t.Tasks[stage], Task{stage, s.chunk, s.micro, s.work, start, now})
		ends.of[s.work][part][s.micro] = now
		progress = true
	}
	return progress
}

// ends has the end of each task that has run, and -1 for others.
type ends struct {
	of [3][][]int64 // by work, part and micro-batch
}

func newEnds(parts, micro int) ends {
	var e ends
	for work := range e.of {
		e.of[work] = make([][]int64, parts)
		for part := range parts {
			e.of[work][part] = make([]int64, micro)
			for i := range micro {
				e.of[work][part][i] = -1
			}
		}
	}
	return e
}

// ready returns the tick when all dependencies of a task have ended, or -1.
func (e ends) ready(work Work, part, micro int) int64 {
	switch {
	case work == Forward && part == 0:
		return 0
	case work == Forward:
		return e.of[Forward][part-1][micro]
	case work == Backward && part == len(e.of[Backward])-1:
		return e.of[Forward][part][micro]
	case work == Backward:
		return e.of[Backward][part+1][micro]
	}
	return e.of[Backward][part][micro]
}

// Bubble returns the ticks that all stages together are idle, and the ticks that
// they have: stages × Span. Their ratio is the share of the bubble.
func (t *Timeline) Bubble() (idle, total int64) {
	total = int64(t.Stages) * t.Span
	idle = total
	for _, tasks := range t.Tasks {
		for _, task := range tasks {
			idle -= task.End - task.Start
		}
	}
	return idle, total
}

// PeakLive returns how many forwards of a stage keep their activations at the same
// time, at most. A forward keeps them from its start to the end of the last task of
// its micro-batch and chunk. With chunks, each forward covers one chunk of the
// stage's layers.
func (t *Timeline) PeakLive(stage int) int {
	last := Backward
	if t.Kind == ZeroBubble {
		last = Weight
	}
	live, peak := 0, 0
	for _, task := range t.Tasks[stage] {
		switch task.Work {
		case Forward:
			live++
			peak = max(peak, live)
		case last:
			live--
		}
	}
	return peak
}
