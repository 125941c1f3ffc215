package diagram

import (
	"fmt"
	"strconv"

	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Pipeline is a schedule of a pipeline. Without durations, its parts are equal.
type Pipeline strategy.Pipeline

// Bounds of a chart.
const (
	maxStages = 16   // that are drawn one by one
	maxLabels = 1024 // tasks of a stage that have labels; more labels would not fit
)

var workKinds = []kind{
	pipeline.Forward:  {name: "forward", sign: '░', hue: 1},
	pipeline.Backward: {name: "backward", sign: '▓', hue: 3},
	pipeline.Weight:   {name: "gradients of the weights", sign: '▒', hue: 5},
}

// Draw draws the tasks of each stage over time, with the bubble shaded.
func (p Pipeline) Draw() (*Diagram, error) {
	if err := pipeline.Check(p.Kind, p.Stages, p.MicroBatches, p.Chunks); err != nil {
		return nil, at("", err)
	}
	even := p.Durations.Forward == nil
	durations := p.Durations
	if even {
		durations = equalParts(p.Kind, p.Stages*p.Chunks)
	}
	t, err := pipeline.Build(p.Kind, p.Stages, p.MicroBatches, p.Chunks, durations)
	if err != nil {
		return nil, at("", err)
	}
	title := fmt.Sprintf("Pipeline %s: %s, %s", p.Kind, wording.Count(int64(p.Stages), "stage", "stages"), wording.Count(int64(p.MicroBatches), "micro-batch", "micro-batches"))
	if p.Chunks > 1 {
		title += fmt.Sprintf(", %d chunks", p.Chunks)
	}
	idle, total := t.Bubble()
	bubble := fmt.Sprintf("The stages are idle for %s of the time: %s of %s ticks.", percent(idle, total), wording.Thousands(idle), wording.Thousands(total))
	if num, den := pipeline.BubbleShare(p.Kind, p.Stages, p.MicroBatches, p.Chunks); even {
		bubble += fmt.Sprintf(" The closed form is %s.", percent(num, den))
	} else {
		stage, busy := slowest(t)
		bubble += fmt.Sprintf(" Stage %d, the slowest, is idle for %s.", stage, percent(t.Span-busy, t.Span))
	}
	peak := "The last number is how many micro-batches a stage keeps the activations of, at its peak."
	if p.Chunks > 1 {
		peak = "Letters name chunks. The last number is how many chunks of micro-batches a stage keeps the activations of, at its peak."
	}
	d := &Diagram{title: title}
	d.about = fmt.Sprintf("%s. %s The first stage keeps the activations of up to %d forwards, the last one of up to %d.", title, bubble, t.PeakLive(0), t.PeakLive(p.Stages-1))
	d.add(note{muted, bubble}, space(8), chart(t), space(2), note{muted, peak})
	return d, nil
}

// slowest returns the stage that works longest, and its ticks of work.
func slowest(t *pipeline.Timeline) (stage int, busy int64) {
	for s, tasks := range t.Tasks {
		sum := int64(0)
		for _, k := range tasks {
			sum += k.End - k.Start
		}
		if sum > busy {
			stage, busy = s, sum
		}
	}
	return stage, busy
}

// equalParts returns durations of equal parts. A backward task takes twice as long as a
// forward task: half of it for the gradients of inputs, half for the gradients of weights.
func equalParts(kind pipeline.Kind, parts int) pipeline.Durations {
	if kind == pipeline.ZeroBubble {
		return pipeline.Even(parts, 1, 1, 1)
	}
	return pipeline.Even(parts, 1, 2, 0)
}

// chart returns the chart of a timeline, with a lane for each stage. The text of a lane is
// the largest number of micro-batches that the stage keeps activations of.
func chart(t *pipeline.Timeline) *gantt {
	g := &gantt{kinds: workKinds[:2], idle: "bubble", span: max(t.Span, 1)}
	if t.Kind == pipeline.ZeroBubble {
		g.kinds = workKinds
	}
	for _, s := range drawing.Shown(t.Stages, maxStages) {
		if s == drawing.Gap {
			g.lanes = append(g.lanes, lane{})
			continue
		}
		l := lane{label: "stage " + strconv.Itoa(s), text: strconv.Itoa(t.PeakLive(s))}
		for _, k := range t.Tasks[s] {
			text := ""
			if len(t.Tasks[s]) <= maxLabels {
				text = taskName(t, k)
			}
			l.tasks = append(l.tasks, task{start: k.Start, end: k.End, kind: int(k.Work), text: text, pale: k.Chunk%2 == 1})
		}
		g.lanes = append(g.lanes, l)
	}
	return g
}

// taskName writes the micro-batch of a task, and its chunk as a letter.
func taskName(t *pipeline.Timeline, k pipeline.Task) string {
	text := strconv.Itoa(k.Micro)
	if t.Chunks > 1 && t.Chunks <= 26 {
		text += string(rune('a' + k.Chunk))
	}
	return text
}

// percent writes a share with one decimal.
func percent(part, whole int64) string {
	return strconv.FormatFloat(100*float64(part)/float64(max(whole, 1)), 'f', 1, 64) + " %"
}
