// Package diagram draws how work and data are split over devices:
//
//   - [Mesh]: groups of a mesh
//   - [Matmul]: the product of partitioned matrices
//   - [Pipeline]: schedules over time, with the bubble
//   - [Collective]: the values of all devices, step by step
//   - [Memory]: what fills the memory of devices
//   - [Loading]: what each process reads in the four ways of loading
//
// A [Spec] describes what to draw. Its Diagram is written as text for a terminal
// ([Diagram.Text]), and as SVG for notebooks and pages ([Diagram.SVG]). Both forms
// come from the same parts, so they show the same.
package diagram

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Spec describes a diagram.
type Spec interface {
	// Draw returns the diagram. An error is InvalidArgument, and its attribute
	// "path" is the JSON Pointer of the wrong member of the spec.
	Draw() (*Diagram, error)
}

// Diagram is a picture that can be written as text and as SVG.
type Diagram struct {
	title string
	about string // describes the picture for screen readers
	parts []part
}

// part is a part of a diagram. Each part is below the one before it.
type part interface {
	text(width int) []string
	svg(c *drawing.Canvas)
}

// add appends parts.
func (d *Diagram) add(parts ...part) { d.parts = append(d.parts, parts...) }

// Widths of diagrams: of texts in characters, of SVGs in pixels.
const (
	columns    = 80               // columns of a text by default
	minColumns = 40               // columns of the narrowest text
	maxWidth   = drawing.MaxWidth // width of an SVG by default
	minWidth   = 320              // width of the narrowest SVG
)

// maxLines bounds the devices or rows that a diagram draws one by one.
const maxLines = 8

// Text writes the diagram for a terminal with this many columns; 0 stands for 80.
// Below 40 columns it is as wide as for 40.
func (d *Diagram) Text(width int) string {
	if width == 0 {
		width = columns
	}
	width = max(width, minColumns)
	lines := drawing.Wrap("", d.title, width)
	for _, p := range d.parts {
		lines = append(lines, p.text(width)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// SVG writes the diagram as a document that is at most this many pixels wide; 0
// stands for 760. Below 320 pixels it is as wide as for 320. The document may be a file
// or a part of an HTML page. It follows the light or dark preference of the viewer, and
// has a title and a description for screen readers.
func (d *Diagram) SVG(width int) string {
	if width == 0 {
		width = maxWidth
	}
	c := drawing.New(minWidth - 2*drawing.Margin)
	c.Limit = max(width, minWidth) - drawing.Margin
	note{bold, d.title}.svg(c)
	for _, p := range d.parts {
		p.svg(c)
	}
	return c.Document(d.title, d.about)
}

// invalid makes the error of a spec that is wrong at path, a JSON Pointer into it.
func invalid(path, format string, args ...any) *status.Error {
	if path != "" {
		format = "%s: " + format
		args = append([]any{wording.Cut(path, 120)}, args...)
	}
	return status.Errorf(status.InvalidArgument, "diagram", format, args...).With("path", path)
}

// limit checks that a number is from 1 to most.
func limit(path string, n, most int) error {
	if n < 1 || n > most {
		return invalid(path, "expected a number from 1 to %d, but found %d", most, n)
	}
	return nil
}

// note is a sentence. If it is wider than the diagram, lines break between words.
type note struct{ class, sentence string }

// The CSS classes of text.
const (
	bold  = "mf-b"
	plain = "mf-t"
	muted = "mf-m"
)

func (n note) text(width int) []string { return drawing.Wrap("", n.sentence, width) }

func (n note) svg(c *drawing.Canvas) {
	for _, line := range drawing.Wrap("", n.sentence, (c.Limit-drawing.Margin)/drawing.CharWidth) {
		c.Text(drawing.Margin, n.class, line)
	}
}

// space is vertical space between parts: an empty line of a text, or so many pixels of
// an SVG.
type space int

func (space) text(int) []string       { return []string{""} }
func (s space) svg(c *drawing.Canvas) { c.Y += int(s) }
