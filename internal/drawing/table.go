package drawing

import (
	"strings"
)

// Weight is the thickness of a drawn line.
type Weight int

// The weights. None means without a line.
const (
	None Weight = iota
	Light
	Heavy
)

// junctions has the box-drawing characters. The index has four digits in base 3: the
// weights of the arms up, right, down and left.
var junctions = []rune(" ╴╸╷┐┑╻┒┓╶─╾┌┬┭┎┰┱╺╼━┍┮┯┏┲┳" +
	"╵┘┙│┤┥╽┧┪└┴┵├┼┽┟╁╅┕┶┷┝┾┿┢╆╈" +
	"╹┚┛╿┦┩┃┨┫┖┸┹┞╀╃┠╂╉┗┺┻┡╄╇┣╊╋")

func junction(up, right, down, left Weight) string {
	return string(junctions[27*up+9*right+3*down+left])
}

// Table is a table of cells with borders, drawn with characters. All cells have one
// width.
type Table struct {
	Rows  []string     // labels
	Cols  []string     // labels; nil for no line of labels
	Cells [][][]string // lines of each cell
	Pad   int          // spaces on each side of a cell
	Dense bool         // draw no light lines between rows

	// Border returns the weight of the line between the cells (i, j) and (k, m).
	// One of them may be outside the table.
	Border func(i, j, k, m int) Weight

	label int // width of the row labels
	width int // width of the text of a cell
}

// Measure computes the widths. It must be called before the other methods.
func (t *Table) Measure() {
	t.label, t.width = 0, 3
	for i, row := range t.Cells {
		t.label = max(t.label, Runes(t.Rows[i]))
		for _, lines := range row {
			for _, text := range lines {
				t.width = max(t.width, Runes(text))
			}
		}
	}
	for _, text := range t.Cols {
		t.width = max(t.width, Runes(text))
	}
}

// Total returns the width of the whole table in characters.
func (t *Table) Total() int { return t.label + 2 + t.columns()*(t.width+2*t.Pad+1) }

// columns returns the number of columns.
func (t *Table) columns() int { return len(t.Cells[0]) }

// Lines returns the drawing.
func (t *Table) Lines() []string {
	var out []string
	width := t.width + 2*t.Pad
	if t.Cols != nil {
		line := strings.Repeat(" ", t.label+2)
		for _, text := range t.Cols {
			line += Center(text, width) + " "
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	for i := 0; i <= len(t.Rows); i++ {
		if border := t.border(i, width); border != "" {
			out = append(out, strings.Repeat(" ", t.label+1)+border)
		}
		if i < len(t.Rows) {
			out = t.row(out, i, width)
		}
	}
	return out
}

// row appends the lines of row i.
func (t *Table) row(out []string, i, width int) []string {
	height := 1
	for _, lines := range t.Cells[i] {
		height = max(height, len(lines))
	}
	for k := range height {
		label := ""
		if k == (height-1)/2 {
			label = t.Rows[i]
		}
		line := strings.Repeat(" ", t.label-Runes(label)) + label + " "
		for j, lines := range t.Cells[i] {
			text := "" // the text of a cell is in the middle of the height of its row
			if n := k - (height-len(lines))/2; n >= 0 && n < len(lines) {
				text = lines[n]
			}
			line += verticals[t.vertical(i, j)] + Center(text, width)
		}
		line += verticals[t.vertical(i, t.columns())]
		out = append(out, strings.TrimRight(line, " "))
	}
	return out
}

// The characters of lines by weight.
var (
	verticals   = []string{" ", "│", "┃"}
	horizontals = []string{" ", "─", "━"}
)

// vertical returns the weight of the line left of column j in row i.
func (t *Table) vertical(i, j int) Weight { return t.Border(i, j-1, i, j) }

// horizontal returns the weight of the line above row i in column j.
func (t *Table) horizontal(i, j int) Weight { return t.Border(i-1, j, i, j) }

// border returns the line above row i. It is "" if it would be light in a dense table.
func (t *Table) border(i, width int) string {
	omitted := t.Dense
	for j := range t.columns() {
		omitted = omitted && t.horizontal(i, j) == Light
	}
	if omitted {
		return ""
	}
	var s strings.Builder
	for j := 0; j <= t.columns(); j++ {
		left, right := t.horizontal(i, j-1), t.horizontal(i, j)
		s.WriteString(junction(t.vertical(i-1, j), right, t.vertical(i, j), left))
		if j < t.columns() {
			s.WriteString(strings.Repeat(horizontals[right], width))
		}
	}
	return strings.TrimRight(s.String(), " ")
}
