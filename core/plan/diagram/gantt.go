package diagram

import (
	"fmt"
	"sort"
	"strings"

	"github.com/meshfeed/meshfeed/internal/drawing"
)

// gantt is a chart of tasks over time. Time without a task is shaded.
type gantt struct {
	kinds []kind
	idle  string // the name of time without a task, for the legend
	lanes []lane
	span  int64 // ticks of the whole chart
}

// lane is a row of tasks that do not overlap, in the order of time. A lane without a
// label stands for lanes left out.
type lane struct {
	label string
	tasks []task
	text  string // after the tasks
}

// task is a task from tick start to tick end.
type task struct {
	start, end int64
	kind       int // index in gantt.kinds
	text       string
	pale       bool // lighter in an SVG
}

// maxTick is the largest number of characters per tick.
const maxTick = 3

// Sizes of a chart in pixels.
const (
	laneHeight = 20
	laneStep   = 24 // from a lane to the next one
	wide       = 26 // width of a typical task, at most
	legible    = 8  // width of a typical task, if the middle of the chart is left out
	coarse     = 2  // width of a sample: narrower tasks are not drawn one by one
	cutWidth   = 28 // that stand for the middle
)

// most returns the kind of task that takes most of the time from tick start to tick
// end, or -1 if idle time does.
func (l lane) most(start, end int64, kinds int) int {
	times := make([]int64, kinds+1)
	times[kinds] = end - start
	first := sort.Search(len(l.tasks), func(i int) bool { return l.tasks[i].end > start })
	for _, t := range l.tasks[first:] {
		if t.start >= end {
			break
		}
		n := min(t.end, end) - max(t.start, start)
		times[t.kind] += n
		times[kinds] -= n
	}
	best := kinds
	for i, n := range times {
		if n > times[best] {
			best = i
		}
	}
	if best == kinds {
		return -1
	}
	return best
}

// widths returns the widths of the longest label and the longest text in characters.
func (g *gantt) widths() (label, text int) {
	for _, l := range g.lanes {
		label, text = max(label, drawing.Runes(l.label)), max(text, drawing.Runes(l.text))
	}
	return label, text
}

// kindAt is most for two positions on a lane of the given width, instead of two ticks.
func (g *gantt) kindAt(l lane, from, to, width int) int {
	start, end := int64(from)*g.span/int64(width), int64(to)*g.span/int64(width)
	return l.most(start, max(end, start+1), len(g.kinds))
}

func (g *gantt) text(width int) []string {
	label, text := g.widths()
	space := max(width-label-text-4, minBar)
	size := int(min(g.span*maxTick, int64(space)/max(g.span, 1)*g.span))
	if size == 0 {
		size = space
	}
	var out []string
	for _, l := range g.lanes {
		if l.label == "" {
			out = append(out, strings.Repeat(" ", label)+"  ⋮")
			continue
		}
		line := []rune(strings.Repeat("·", size))
		for i := range line {
			if k := g.kindAt(l, i, i+1, size); k >= 0 {
				line[i] = g.kinds[k].sign
			}
		}
		for _, t := range l.tasks {
			at, end := int(t.start*int64(size)/g.span), int(t.end*int64(size)/g.span)
			if drawing.Runes(t.text) <= end-at && end-at > 1 {
				copy(line[at:], []rune(t.text))
			}
		}
		out = append(out, strings.TrimRight(l.label+strings.Repeat(" ", label-drawing.Runes(l.label))+" ▕"+string(line)+"▏ "+l.text, " "))
	}
	var legend []string
	for _, k := range g.kinds {
		legend = append(legend, string(k.sign)+" "+k.name)
	}
	return append(append(out, ""), drawing.Join(0, width, append(legend, "· "+g.idle)...)...)
}

func (g *gantt) svg(c *drawing.Canvas) {
	label, text := g.widths()
	x := drawing.Margin + label*drawing.CharWidth + 12
	width := c.Limit - x - text*drawing.CharWidth - 12
	typical := g.typical()
	width = int(min(int64(width), g.span*wide/typical))
	axis := g.axis(width, typical)
	for _, l := range g.lanes {
		if l.label == "" {
			c.Label(x+width/2, c.Y+12, muted, "middle", "⋮")
			c.Y += laneStep
			continue
		}
		c.Label(drawing.Margin, c.Y+14, plain, "", l.label)
		c.Add(`<rect class="mf-track" x="%d" y="%d" width="%d" height="%d"/>`, x, c.Y, axis.until, laneHeight)
		switch {
		case axis.cut():
			rest := axis.until + cutWidth
			c.Label(x+axis.until+cutWidth/2, c.Y+14, muted, "middle", "⋯")
			c.Add(`<rect class="mf-track" x="%d" y="%d" width="%d" height="%d"/>`, x+rest, c.Y, width-rest, laneHeight)
			g.tasks(c, l, x, axis)
		case int64(width)*typical < g.span*coarse:
			g.sampled(c, l, x, width)
		default:
			g.tasks(c, l, x, axis)
		}
		c.Label(x+width+12, c.Y+14, muted, "", l.text)
		c.Widen(x + width + 12 + drawing.Runes(l.text)*drawing.CharWidth - drawing.Margin)
		c.Y += laneStep
	}
	if axis.cut() {
		c.Label(drawing.Margin, c.Y+14, muted, "", fmt.Sprintf("⋯ The middle, %.0f %% of the time, is left out.", 100*float64(axis.to-axis.from)/float64(g.span)))
		c.Y += laneStep
	}
	drawLegend(c, append(g.kinds[:len(g.kinds):len(g.kinds)], kind{name: g.idle}))
}

// typical returns the mean duration of the tasks of the first kind, in ticks.
func (g *gantt) typical() int64 {
	var ticks, tasks int64
	for _, l := range g.lanes {
		for _, t := range l.tasks {
			if t.kind == 0 {
				ticks += t.end - t.start
				tasks++
			}
		}
	}
	return max(1, ticks/max(1, tasks))
}

// axis maps ticks to pixels. It leaves out the ticks between from and to, if they differ.
type axis struct {
	from, to int64
	until    int // pixel of from
}

// axis returns the axis of a chart. If tasks are too narrow, it leaves the middle out,
// unless lanes begin too late or end too early to be seen then.
func (g *gantt) axis(width int, typical int64) axis {
	whole := axis{g.span, g.span, width}
	if int64(width)*typical >= g.span*coarse {
		return whole
	}
	var edge int64 // ticks until all lanes have begun, or after a lane has ended
	for _, l := range g.lanes {
		if n := len(l.tasks); n > 0 {
			edge = max(edge, l.tasks[0].start, g.span-l.tasks[n-1].end)
		}
	}
	half := (width - cutWidth) / 2
	shown := max(int64(half)*typical/legible, edge+edge/2) // ticks of each end
	if 2*shown >= g.span || int64(half)*typical < shown*coarse {
		return whole
	}
	return axis{shown, g.span - shown, half}
}

func (a axis) cut() bool { return a.from < a.to }

// pixels returns the pixels where a task begins and ends. They are equal for a task that is
// left out.
func (a axis) pixels(t task) (at, end int) {
	scale := func(tick int64) int { return int(tick * int64(a.until) / a.from) }
	rest := a.until + cutWidth // pixel of to
	switch {
	case t.end <= a.from:
		return scale(t.start), scale(t.end)
	case t.start >= a.to:
		return rest + scale(t.start-a.to), rest + scale(t.end-a.to)
	case t.start < a.from:
		return scale(t.start), a.until
	case t.end > a.to:
		return rest, rest + scale(t.end-a.to)
	}
	return a.until, a.until
}

// tasks draws the tasks of a lane one by one.
func (g *gantt) tasks(c *drawing.Canvas, l lane, x int, axis axis) {
	for _, t := range l.tasks {
		at, end := axis.pixels(t)
		if at == end && axis.cut() {
			continue
		}
		opacity := ""
		if t.pale {
			opacity = ` fill-opacity="0.6"`
		}
		c.Add(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"%s/>`, x+at, c.Y, max(end-at-1, 1), laneHeight, g.kinds[t.kind].hue.color(), opacity)
		if drawing.Runes(t.text)*drawing.CharWidth < end-at {
			c.Label(x+(at+end)/2, c.Y+14, "mf-w", "middle", t.text)
		}
	}
}

// sampled draws a lane with narrow tasks. Every few pixels have the color of the kind
// of task that takes most of their time.
func (g *gantt) sampled(c *drawing.Canvas, l lane, x, width int) {
	paths := make([]strings.Builder, len(g.kinds))
	kind := func(at int) int { return g.kindAt(l, at, min(at+coarse, width), width) }
	for at := 0; at < width; {
		k, end := kind(at), at+coarse
		for end < width && kind(end) == k {
			end += coarse
		}
		end = min(end, width)
		if k >= 0 {
			fmt.Fprintf(&paths[k], "M%d %dh%dv%dh-%dz", x+at, c.Y, end-at, laneHeight, end-at)
		}
		at = end
	}
	for i := range paths {
		if paths[i].Len() > 0 {
			c.Add(`<path fill="%s" d="%s"/>`, g.kinds[i].hue.color(), paths[i].String())
		}
	}
}
