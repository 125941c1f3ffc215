// Package drawing draws pictures in two forms: with characters for a terminal
// ([Table], [Columns], [Wrap]), and as SVG for notebooks and pages ([Canvas]).
//
// All text is monospaced, so the width of a text is its number of characters.
package drawing

import (
	"fmt"
	"strings"
)

// Sizes in pixels.
const (
	Margin    = 20
	CharWidth = 7 // width of a character of 11.5 px
	LineStep  = 18
	MaxWidth  = 760 // width of a grid or a line by default
)

// Canvas is an SVG document while it is drawn, from top to bottom.
type Canvas struct {
	Y     int // top of what is drawn next
	Limit int // right end of lines: an x coordinate
	width int // width of the drawing without its margins
	body  strings.Builder
}

// New returns an empty canvas of at least this width, without its margins.
func New(width int) *Canvas { return &Canvas{Y: Margin, Limit: MaxWidth, width: width} }

// Widen makes the drawing at least this wide, without its margins.
func (c *Canvas) Widen(width int) { c.width = max(c.width, width) }

// style has a light and a dark variant of all colors except the palette's colors, which
// suit both.
const style = `
.mf-bg{fill:#fff;stroke:#d8dee6}.mf-t{fill:#1c2733}.mf-b{fill:#1c2733;font-weight:600}.mf-m{fill:#5b6875}.mf-w{fill:#fff;font-weight:600}
.mf-cell{stroke:#c3ccd6}.mf-track{fill:#e9edf2}.mf-many{fill:#6c7a89}.mf-sep{stroke:#8a96a3}.mf-error{fill:#c02b37;font-weight:600}.mf-warning{fill:#96620a;font-weight:600}.mf-info{fill:#2a63b8;font-weight:600}
@media (prefers-color-scheme:dark){.mf-bg{fill:#151b22;stroke:#333d49}.mf-t{fill:#e3e9ef}.mf-b{fill:#f3f6f9}.mf-m{fill:#9aa7b4}.mf-cell{stroke:#465260}.mf-track{fill:#2a333d}.mf-many{fill:#8b99a7}.mf-sep{stroke:#77838f}.mf-error{fill:#ff8790}.mf-warning{fill:#f0b95c}.mf-info{fill:#8ab8ff}}
`

// palette has colors of processes and other things. White text is legible on each.
var palette = []string{"#2f68cc", "#b04a12", "#207a50", "#983a96", "#7d6200", "#0b7385", "#bb3650", "#6350c0", "#4d6f25", "#795843"}

// Color returns the color number n. The palette repeats.
func Color(n int) string { return palette[n%len(palette)] }

// Document returns the whole drawing. It may be a file or a part of an HTML page.
// It has its own background, follows the light or dark preference of the viewer,
// and has a title and a description for screen readers.
func (c *Canvas) Document(title, description string) string {
	w, h := c.width+2*Margin, c.Y+Margin
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%d" height="%d" viewBox="0 0 %d %d" style="max-width:100%%;height:auto" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="11.5">`+"\n", w, h, w, h)
	fmt.Fprintf(&s, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", escape(title), escape(description), style)
	fmt.Fprintf(&s, `<rect class="mf-bg" x="0.5" y="0.5" width="%d" height="%d" rx="10"/>`+"\n", w-1, h-1)
	return s.String() + c.body.String() + "</svg>\n"
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape replaces the special characters of XML. Function wording.Plain has already
// removed the characters that XML does not allow.
func escape(s string) string { return escapes.Replace(s) }

// Add appends an SVG element.
func (c *Canvas) Add(format string, args ...any) { fmt.Fprintf(&c.body, format+"\n", args...) }

// Label puts a text at a position: y is its baseline, and x is its start. With the anchor
// "middle" or "end" instead of "", x is its middle or its end.
func (c *Canvas) Label(x, y int, class, anchor, text string) {
	if anchor != "" {
		anchor = ` text-anchor="` + anchor + `"`
	}
	c.Add(`<text class="%s" x="%d" y="%d"%s xml:space="preserve">%s</text>`, class, x, y, anchor, escape(text))
}

// Text puts a line of text below everything else.
func (c *Canvas) Text(x int, class, text string) {
	c.Label(x, c.Y+12, class, "", text)
	c.Widen(x - Margin + Runes(text)*CharWidth)
	c.Y += LineStep
}

// Lines joins pieces with " · ". A piece that would exceed the limit begins a new line.
func (c *Canvas) Lines(x int, class string, pieces ...string) {
	line := ""
	for i, p := range pieces {
		switch {
		case i == 0:
			line = p
		case x+(Runes(line)+3+Runes(p))*CharWidth > c.Limit:
			c.Text(x, class, line)
			line = p
		default:
			line += " · " + p
		}
	}
	c.Text(x, class, line)
}
