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
	span  int64 // of the whole chart in ticks
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
	maxTickSVG = 26 // per tick
	coarse     = 2  // of a sample: narrower ticks are not drawn one by one
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
	width = int(min(int64(width), g.span*maxTickSVG))
	for _, l := range g.lanes {
		if l.label == "" {
			c.Label(x+width/2, c.Y+12, muted, "middle", "⋮")
			c.Y += laneStep
			continue
		}
		c.Label(drawing.Margin, c.Y+14, plain, "", l.label)
		c.Add(`<rect class="mf-track" x="%d" y="%d" width="%d" height="%d"/>`, x, c.Y, width, laneHeight)
		if int64(width) < g.span*coarse {
			g.sampled(c, l, x, width)
		} else {
			g.tasks(c, l, x, width)
		}
		c.Label(x+width+12, c.Y+14, muted, "", l.text)
		c.Widen(x + width + 12 + drawing.Runes(l.text)*drawing.CharWidth - drawing.Margin)
		c.Y += laneStep
	}
	drawLegend(c, append(g.kinds[:len(g.kinds):len(g.kinds)], kind{name: g.idle}))
}

// tasks draws the tasks of a lane one by one.
func (g *gantt) tasks(c *drawing.Canvas, l lane, x, width int) {
	for _, t := range l.tasks {
		at, end := int(t.start*int64(width)/g.span), int(t.end*int64(width)/g.span)
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
