package pipeline

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Check returns an error if the timeline is impossible: a task is missing, comes
// twice, has the wrong length, begins before a task that it needs has ended, or
// overlaps another of its stage. It reads the tasks alone and not the rules that
// built them.
func (t *Timeline) Check() error {
	if len(t.Tasks) != t.Stages {
		return impossible("the timeline has %d stages, not %d", len(t.Tasks), t.Stages)
	}
	tasks := map[Task]Task{} // without times → with times
	for stage, row := range t.Tasks {
		row = slices.SortedFunc(slices.Values(row), func(a, b Task) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
		for i, task := range row {
			if err := t.checkTask(stage, task); err != nil {
				return err
			}
			if i > 0 && row[i-1].End > task.Start {
				return impossible("%s begins at %d, before %s ends at %d", task, task.Start, row[i-1], row[i-1].End)
			}
			if _, twice := tasks[task.untimed()]; twice {
				return impossible("%s comes twice", task)
			}
			tasks[task.untimed()] = task
		}
	}
	if want := t.works() * t.Stages * t.Chunks * t.Micro; len(tasks) != want {
		return impossible("the timeline has %d tasks, not %d", len(tasks), want)
	}
	for _, task := range tasks {
		for _, need := range t.needs(task) {
			if n := tasks[need]; n.End > task.Start {
				return impossible("%s begins at %d, but needs %s, which ends at %d", task, task.Start, n, n.End)
			}
		}
	}
	return nil
}

func impossible(format string, args ...any) error {
	return status.Errorf(status.InvalidArgument, "pipeline", format, args...)
}

// works returns the number of tasks of a micro-batch in a part: 3 if weight gradients are
// separate tasks, else 2.
func (t *Timeline) works() int {
	if t.Kind == ZeroBubble {
		return 3
	}
	return 2
}

// checkTask checks a task on its own.
func (t *Timeline) checkTask(stage int, task Task) error {
	switch {
	case task.Stage != stage:
		return impossible("%s is among the tasks of stage %d", task, stage)
	case task.Micro < 0 || task.Micro >= t.Micro || task.Chunk < 0 || task.Chunk >= t.Chunks || int(task.Work) >= t.works():
		return impossible("%s does not exist in %s and %s of schedule %q", task,
			wording.Count(int64(t.Micro), "micro-batch", "micro-batches"), wording.Count(int64(t.Chunks), "chunk", "chunks"), t.Kind)
	case task.Start < 0 || task.End > t.Span:
		return impossible("%s from %d to %d is outside the span of %d ticks", task, task.Start, task.End, t.Span)
	}
	if want := t.Durations.ticks(t.Kind, task.Work, task.Chunk*t.Stages+stage); task.End-task.Start != want {
		return impossible("%s takes %d ticks, not %d", task, task.End-task.Start, want)
	}
	return nil
}

// needs lists the tasks that must end before a task begins, without times.
func (t *Timeline) needs(task Task) []Task {
	task = task.untimed()
	at := func(part int, work Work) Task {
		return Task{Stage: part % t.Stages, Chunk: part / t.Stages, Micro: task.Micro, Work: work}
	}
	part, parts := task.Chunk*t.Stages+task.Stage, t.Stages*t.Chunks
	var needs []Task
	switch task.Work {
	case Forward:
		if part > 0 {
			needs = append(needs, at(part-1, Forward))
		}
	case Backward:
		needs = append(needs, at(part, Forward))
		if part+1 < parts {
			needs = append(needs, at(part+1, Backward))
		}
	case Weight:
		needs = append(needs, at(part, Backward))
	}
	return needs
}

func (t Task) untimed() Task {
	t.Start, t.End = 0, 0
	return t
}
