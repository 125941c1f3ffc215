package diagram

import (
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/internal/drawing"
)

// bars are horizontal bars of several segments, with a legend of the kinds of
// segments.
type bars struct {
	kinds []kind
	bars  []bar
	size  int64 // bytes that the whole width represents
	mark  int64 // bytes to mark with a line, if fewer than size; 0 for no line
}

// kind is a kind of segment.
type kind struct {
	name  string
	sign  rune // fills the segment in a text
	hue   hue  // 0 for the color of an empty bar
	faint bool // pale with a dashed border in an SVG
}

// bar is one bar with its texts.
type bar struct {
	heading, about string // lines above the bar; "" for none
	label          string
	parts          []int64 // bytes of each kind; nil for a line of text alone
	text           string  // after the bar
}

// Sizes of bars, in characters of a text.
const (
	barColumns = 32 // largest width
	minBar     = 12 // smallest width, also of the lanes of a chart
)

// Sizes of bars, in pixels of an SVG.
const (
	barHeight = 14
	barStep   = 22 // from a bar to the next one
	barGap    = 12 // between a label, its bar and its text
	swatch    = 14 // width of a color in the legend
)

// edges returns the ends of the segments of a bar with the given width. A segment that
// is not empty has at least the width 1 if there is space.
func (b *bars) edges(parts []int64, width int) []int {
	edges := make([]int, len(parts))
	sum, last := int64(0), 0
	for i, n := range parts {
		sum += n
		edge := b.scaled(sum, width)
		if n > 0 {
			edge = max(edge, last+1)
		}
		last = min(max(edge, last), width)
		edges[i] = last
	}
	return edges
}

// scaled returns the position of n bytes if the given width represents size.
func (b *bars) scaled(n int64, width int) int {
	return int(float64(n) / float64(max(b.size, 1)) * float64(width))
}

// widths returns the widths of the longest label and the longest text in characters.
func (b *bars) widths() (label, text int) {
	for _, r := range b.bars {
		label, text = max(label, drawing.Runes(r.label)), max(text, drawing.Runes(r.text))
	}
	return label, text
}

func (b *bars) text(width int) []string {
	label, text := b.widths()
	size := max(min(width-label-text-6, barColumns), minBar)
	var out []string
	for _, r := range b.bars {
		if r.heading != "" {
			out = append(append(out, ""), drawing.Wrap("", r.heading, width)...)
			out = append(out, drawing.Wrap("  ", r.about, width)...)
		}
		if r.parts == nil {
			out = append(out, drawing.Wrap("", r.text, width)...)
			continue
		}
		var s strings.Builder
		at := 0
		for i, edge := range b.edges(r.parts, size) {
			s.WriteString(strings.Repeat(string(b.kinds[i].sign), max(edge-at, 0)))
			at = max(at, edge)
		}
		filled := []rune(s.String() + strings.Repeat("·", size-at))
		if b.mark > 0 && b.mark < b.size {
			filled[b.scaled(b.mark, size)] = '┃'
		}
		line := r.label + strings.Repeat(" ", label-drawing.Runes(r.label)) + "  ▕" + string(filled) + "▏  "
		if label+6+size+text > width {
			out = append(out, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", label+3)
		}
		out = append(out, strings.TrimRight(line+r.text, " "))
	}
	return append(append(out, ""), drawing.Join(0, width, b.legend()...)...)
}

// used lists the kinds of segments of the bars.
func (b *bars) used() []kind {
	var list []kind
	for i, k := range b.kinds {
		if slices.ContainsFunc(b.bars, func(r bar) bool { return r.parts != nil && r.parts[i] > 0 }) {
			list = append(list, k)
		}
	}
	return list
}

// legend explains the signs of a text.
func (b *bars) legend() []string {
	var pieces []string
	for _, k := range b.used() {
		pieces = append(pieces, string(k.sign)+" "+k.name)
	}
	return pieces
}

func (b *bars) svg(c *drawing.Canvas) {
	label, text := b.widths()
	x := drawing.Margin
	if label > 0 {
		x += label*drawing.CharWidth + barGap
	}
	below := c.Limit-x-text*drawing.CharWidth-barGap < 140 // the texts are below the bars
	width := c.Limit - x
	if !below {
		width = min(width-text*drawing.CharWidth-barGap, 420)
	}
	for _, r := range b.bars {
		if r.heading != "" {
			c.Y += 12
			note{bold, r.heading}.svg(c)
			note{muted, r.about}.svg(c)
			c.Y += 4
		}
		if r.parts == nil {
			note{muted, r.text}.svg(c)
			continue
		}
		c.Label(drawing.Margin, c.Y+barHeight-2, plain, "", r.label)
		b.draw(c, r.parts, x, width)
		if below {
			c.Y += barStep - 4
			c.Label(x, c.Y+barHeight-4, muted, "", r.text)
			c.Widen(x - drawing.Margin + max(width, drawing.Runes(r.text)*drawing.CharWidth))
		} else {
			c.Label(x+width+barGap, c.Y+barHeight-2, muted, "", r.text)
			c.Widen(x - drawing.Margin + width + barGap + drawing.Runes(r.text)*drawing.CharWidth)
		}
		c.Y += barStep
	}
	drawLegend(c, b.used())
}

// draw draws the segments of a bar, and the mark.
func (b *bars) draw(c *drawing.Canvas, parts []int64, x, width int) {
	c.Add(`<rect class="mf-track" x="%d" y="%d" width="%d" height="%d" rx="3"/>`, x, c.Y, width, barHeight)
	at := 0
	for i, edge := range b.edges(parts, width) {
		if edge > at {
			b.kinds[i].draw(c, x+at, c.Y, edge-at, barHeight)
		}
		at = max(at, edge)
	}
	if b.mark > 0 && b.mark < b.size {
		c.Add(`<path stroke="%s" stroke-width="2" d="M%d %dv%d"/>`, drawing.Color(6), x+b.scaled(b.mark, width), c.Y-3, barHeight+6)
	}
}

// draw draws a segment.
func (k kind) draw(c *drawing.Canvas, x, y, w, h int) {
	switch {
	case k.hue == 0:
		c.Add(`<rect class="mf-track mf-cell" x="%d" y="%d" width="%d" height="%d" rx="2"/>`, x, y, w, h)
	case k.faint:
		c.Add(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" stroke="%s" stroke-dasharray="3 2" fill="%s" fill-opacity="0.25"/>`, x, y, w, h, k.hue.color(), k.hue.color())
	default:
		c.Add(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"/>`, x, y, w, h, k.hue.color())
	}
}

// drawLegend explains the kinds of segments.
func drawLegend(c *drawing.Canvas, kinds []kind) {
	x := drawing.Margin
	c.Y += 8
	for _, k := range kinds {
		w := swatch + 6 + drawing.Runes(k.name)*drawing.CharWidth
		if x > drawing.Margin && x+w > c.Limit {
			x = drawing.Margin
			c.Y += drawing.LineStep
		}
		k.draw(c, x, c.Y+2, swatch, swatch-3)
		c.Label(x+swatch+6, c.Y+12, muted, "", k.name)
		c.Widen(x + w - drawing.Margin)
		x += w + 18
	}
	c.Y += drawing.LineStep
}
