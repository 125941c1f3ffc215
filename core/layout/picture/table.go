package picture

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The weight of a drawn line: none, light or heavy. Heavy lines separate processes.
const (
	none = iota
	light
	heavy
)

// junctions has the character for the weights of the arms up, right, down and left.
// The weights are the digits of its index in base 3.
var junctions = []rune(" ╴╸╷┐┑╻┒┓╶─╾┌┬┭┎┰┱╺╼━┍┮┯┏┲┳" +
	"╵┘┙│┤┥╽┧┪└┴┵├┼┽┟╁╅┕┶┷┝┾┿┢╆╈" +
	"╹┚┛╿┦┩┃┨┫┖┸┹┞╀╃┠╂╉┗┺┻┡╄╇┣╊╋")

func junction(up, right, down, left int) string {
	return string(junctions[27*up+9*right+3*down+left])
}

// table is a grid drawn as text. Each cell has lines of text; all cells have one
// width.
type table struct {
	*grid
	text  [][][]string // lines of each cell
	width int          // of every cell, without borders
	label int          // width of the row labels
	dense bool         // no lines between rows of the same processes
	style
}

// style selects how much space a table takes.
type style struct {
	split bool // processes are above their devices
	start bool // the label of a column is only its start
	pad   int  // spaces on each side of a cell
}

// styles are tried in this order, the widest first.
var styles = []style{{pad: 2}, {pad: 1}, {start: true, pad: 2}, {start: true, pad: 1}, {split: true, pad: 2}, {split: true, pad: 1}, {split: true, start: true, pad: 1}}

// table lays out a grid in a style.
func (l *view) table(g *grid, s style) *table {
	t := &table{grid: g, width: 3, dense: len(g.rows) > 16, style: s}
	for i, line := range g.cells {
		row := make([][]string, len(line))
		for j, c := range line {
			row[j] = l.cellLines(c, s.split)
			for _, text := range row[j] {
				t.width = max(t.width, runes(text))
			}
		}
		t.text = append(t.text, row)
		t.label = max(t.label, len(t.rowLabel(i)))
	}
	for j := range g.cols {
		t.width = max(t.width, len(t.colLabel(j)))
	}
	return t
}

// total returns the width of the whole table.
func (t *table) total() int { return t.label + 2 + len(t.cols)*(t.width+2*t.pad+1) }

// colLabel returns the label of column j, such as 0:8, or 0: if the style shows only
// the start.
func (t *table) colLabel(j int) string {
	label := t.grid.colLabel(j)
	if i := strings.IndexByte(label, ':'); t.start && i >= 0 {
		return label[:i+1]
	}
	return label
}

// draw writes the table.
func (t *table) draw(out *strings.Builder) {
	width := t.width + 2*t.pad
	if t.folded || t.across.dim >= 0 {
		line := strings.Repeat(" ", t.label+2)
		for j := range t.cols {
			line += center(t.colLabel(j), width) + " "
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for i := 0; i <= len(t.rows); i++ {
		if border := t.border(i, width); border != "" {
			out.WriteString(strings.Repeat(" ", t.label+1) + border + "\n")
		}
		if i < len(t.rows) {
			t.drawRow(out, i, width)
		}
	}
}

// drawRow writes the lines of row i.
func (t *table) drawRow(out *strings.Builder, i, width int) {
	height := 1
	for _, lines := range t.text[i] {
		height = max(height, len(lines))
	}
	for k := range height {
		label := ""
		if k == (height-1)/2 {
			label = t.rowLabel(i)
			if t.rows[i] == gap {
				label = "⋮"
			}
		}
		line := strings.Repeat(" ", t.label-runes(label)) + label + " "
		for j := range t.cols {
			line += []string{" ", "│", "┃"}[t.vertical(i, j)] + center(t.lineOf(i, j, k, height), width)
		}
		line += []string{" ", "│", "┃"}[t.vertical(i, len(t.cols))]
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// lineOf returns line k of cell (i, j), whose text is in the middle of the height
// of its row.
func (t *table) lineOf(i, j, k, height int) string {
	lines := t.text[i][j]
	switch {
	case t.rows[i] == gap && t.cols[j] == gap:
		return "⋱"
	case t.rows[i] == gap:
		return "⋮"
	case t.cols[j] == gap && k == (height-1)/2:
		return "⋯"
	}
	if k -= (height - len(lines)) / 2; k >= 0 && k < len(lines) {
		return lines[k]
	}
	return ""
}

// exists reports whether a cell is in the table and not past the end of a
// folded dimension.
func (t *table) exists(i, j int) bool {
	if i < 0 || j < 0 || i >= len(t.rows) || j >= len(t.cols) {
		return false
	}
	return t.rows[i] == gap || t.cols[j] == gap || len(t.cells[i][j].parts) > 0
}

// between returns the weight of the line between the cells (i, j) and (k, m).
func (t *table) between(i, j, k, m int) int {
	a, b := t.exists(i, j), t.exists(k, m)
	switch {
	case !a && !b:
		return none
	case a != b:
		return heavy
	case t.rows[i] == gap || t.cols[j] == gap || t.rows[k] == gap || t.cols[m] == gap:
		return light
	case slices.Equal(t.cells[i][j].processes, t.cells[k][m].processes):
		return light
	}
	return heavy
}

// vertical returns the weight of the line left of column j in row i.
func (t *table) vertical(i, j int) int { return t.between(i, j-1, i, j) }

// horizontal returns the weight of the line above row i in column j.
func (t *table) horizontal(i, j int) int { return t.between(i-1, j, i, j) }

// border returns the line above row i, or "" if a dense table has none there.
func (t *table) border(i, width int) string {
	omitted := t.dense
	for j := range t.cols {
		omitted = omitted && t.horizontal(i, j) == light
	}
	if omitted {
		return ""
	}
	var s strings.Builder
	for j := 0; j <= len(t.cols); j++ {
		left, right := t.horizontal(i, j-1), t.horizontal(i, j)
		s.WriteString(junction(t.vertical(i-1, j), right, t.vertical(i, j), left))
		if j < len(t.cols) {
			s.WriteString(strings.Repeat([]string{" ", "─", "━"}[right], width))
		}
	}
	return strings.TrimRight(s.String(), " ")
}

func center(s string, width int) string {
	left := max(width-runes(s), 0) / 2
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", max(width-left-runes(s), 0))
}

func runes(s string) int { return utf8.RuneCountInString(s) }
