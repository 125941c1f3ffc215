package picture

import (
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/internal/drawing"
)

// style selects how much space a table takes.
type style struct {
	split bool // processes are above their devices
	start bool // the label of a column is only its start
	pad   int  // spaces on each side of a cell
}

// styles are tried in this order, the widest first.
var styles = []style{{pad: 2}, {pad: 1}, {start: true, pad: 2}, {start: true, pad: 1}, {split: true, pad: 2}, {split: true, pad: 1}, {split: true, start: true, pad: 1}}

// table lays out a grid in a style.
func (l *view) table(g *grid, s style) *drawing.Table {
	t := &drawing.Table{Dense: len(g.rows) > 16, Pad: s.pad, Border: g.between}
	for i, line := range g.cells {
		row := make([][]string, len(line))
		for j, c := range line {
			if sign := g.omission(i, j); sign != "" {
				row[j] = []string{sign}
			} else {
				row[j] = l.cellLines(c, s.split)
			}
		}
		t.Cells = append(t.Cells, row)
		label := g.rowLabel(i)
		if g.rows[i] == drawing.Gap {
			label = "⋮"
		}
		t.Rows = append(t.Rows, label)
	}
	if g.folded || g.across.dim >= 0 {
		for j := range g.cols {
			label := g.colLabel(j)
			if n := strings.IndexByte(label, ':'); s.start && n >= 0 {
				label = label[:n+1]
			}
			t.Cols = append(t.Cols, label)
		}
	}
	t.Measure()
	return t
}

// omission returns the sign in cell (i, j) that stands for tiles left out, or "".
func (g *grid) omission(i, j int) string {
	switch {
	case g.rows[i] == drawing.Gap && g.cols[j] == drawing.Gap:
		return "⋱"
	case g.rows[i] == drawing.Gap:
		return "⋮"
	case g.cols[j] == drawing.Gap:
		return "⋯"
	}
	return ""
}

// exists reports whether a cell is in the table and not past the end of a
// folded dimension.
func (g *grid) exists(i, j int) bool {
	if i < 0 || j < 0 || i >= len(g.rows) || j >= len(g.cols) {
		return false
	}
	return g.rows[i] == drawing.Gap || g.cols[j] == drawing.Gap || len(g.cells[i][j].parts) > 0
}

// between returns the weight of the line between the cells (i, j) and (k, m). Heavy
// lines separate processes.
func (g *grid) between(i, j, k, m int) drawing.Weight {
	a, b := g.exists(i, j), g.exists(k, m)
	switch {
	case !a && !b:
		return drawing.None
	case a != b:
		return drawing.Heavy
	case g.rows[i] == drawing.Gap || g.cols[j] == drawing.Gap || g.rows[k] == drawing.Gap || g.cols[m] == drawing.Gap:
		return drawing.Light
	case slices.Equal(g.cells[i][j].processes, g.cells[k][m].processes):
		return drawing.Light
	}
	return drawing.Heavy
}
