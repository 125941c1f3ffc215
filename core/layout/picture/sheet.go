package picture

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// sheet is a grid with the sizes of its drawing.
type sheet struct {
	*grid
	chips [][][]chipRow // chips of each cell
	cellW int
	cellH []int // height of each row
	label int   // width of the row labels
}

// chipRow is a line of a cell: a process and its devices, part by part.
type chipRow struct {
	process string
	color   string // "" for several processes
	parts   [][]chipID
	more    string // stands for what is left out
}

type chipID struct {
	id    int
	first bool // the first device of the mesh that holds the part
}

const (
	cellGap  = 4
	cellPad  = 7
	chipGap  = 4
	maxChips = 16 // chips of a process in a cell
)

// sheet computes the sizes of a grid.
func (c *canvas) sheet(g *grid) *sheet {
	s := &sheet{grid: g}
	longest := 0
	for i, line := range g.cells {
		height := 1
		row := make([][]chipRow, len(line))
		for j, cell := range line {
			row[j] = c.chipRows(cell)
			height = max(height, len(row[j]))
			for _, r := range row[j] {
				s.cellW = max(s.cellW, r.width())
			}
		}
		s.chips = append(s.chips, row)
		s.cellH = append(s.cellH, height*(chipH+chipGap)-chipGap+2*cellPad)
		longest = max(longest, drawing.Runes(s.rowLabel(i)))
	}
	for j := range g.cols {
		s.cellW = max(s.cellW, drawing.Runes(s.colLabel(j))*drawing.CharWidth)
	}
	s.cellW = max(s.cellW+2*cellPad, 40)
	s.label = longest*drawing.CharWidth + 8
	return s
}

// chipRows lists the processes of a cell with their devices.
func (l *view) chipRows(c cell) []chipRow {
	switch {
	case len(c.processes) == 0:
		return nil
	case l.summarized(c):
		return []chipRow{c.summary()}
	}
	rows := make([]chipRow, len(c.processes))
	for i, p := range c.processes {
		rows[i] = chipRow{process: "p" + strconv.Itoa(p), color: l.color(p)}
		left := 0
		for n, part := range c.parts {
			if n == maxChips {
				left += l.held(c, p, n)
				break
			}
			var ids []chipID
			for k, position := range part {
				switch d := l.mesh.Device(int(position)); {
				case d.Process != p:
				case len(ids) >= max(maxChips/len(c.parts), 1):
					left++
				default:
					ids = append(ids, chipID{d.ID, k == 0})
				}
			}
			rows[i].parts = append(rows[i].parts, ids)
		}
		if left += c.left; left > 0 {
			rows[i].more = "+" + strconv.Itoa(left)
		}
	}
	return rows
}

// held counts the devices of a process that hold part n or a later part.
func (l *view) held(c cell, process, n int) int {
	devices := 0
	for _, part := range l.partsOf(c, process)[n:] {
		devices += len(part)
	}
	return devices
}

// summary stands for more processes than there is space for.
func (c cell) summary() chipRow {
	r := chipRow{process: c.processRange()}
	devices := 0
	for _, part := range c.parts {
		devices += len(part)
	}
	r.more = wording.Count(int64(devices), "device", "devices")
	if c.left > 0 {
		r.more = wording.Count(int64(c.left+len(c.parts)), "part", "parts")
	}
	return r
}

func (r chipRow) width() int {
	w := drawing.Runes(r.process)*drawing.CharWidth + 6
	for i, part := range r.parts {
		if i > 0 {
			w += 2 * chipGap
		}
		for _, chip := range part {
			w += chipWidth(chip.id) + chipGap
		}
	}
	if r.more != "" {
		w += drawing.Runes(r.more)*drawing.CharWidth + chipGap
	}
	return w - chipGap
}

func (s *sheet) width() int { return s.label + len(s.cols)*(s.cellW+cellGap) - cellGap }

// draw draws the grid.
func (s *sheet) draw(c *canvas) {
	c.Widen(s.width())
	x0 := drawing.Margin + s.label
	if s.folded || s.across.dim >= 0 {
		for j := range s.cols {
			c.Label(x0+j*(s.cellW+cellGap)+s.cellW/2, c.Y+11, "mf-m", "middle", s.colLabel(j))
		}
		c.Y += drawing.LineStep - 2
	}
	for i, h := range s.cellH {
		if s.rows[i] == drawing.Gap {
			h = chipH
		}
		text := s.rowLabel(i)
		if s.rows[i] == drawing.Gap {
			text = "⋮"
		}
		c.Label(x0-8, c.Y+h/2+4, "mf-m", "end", text)
		for j := range s.cols {
			s.cell(c, i, j, x0+j*(s.cellW+cellGap), h)
		}
		c.Y += h + cellGap
	}
	c.Y += 2
}

// cell draws the cell in row i and column j.
func (s *sheet) cell(c *canvas, i, j, x, h int) {
	if s.rows[i] == drawing.Gap || s.cols[j] == drawing.Gap {
		sign := "⋮"
		if s.cols[j] == drawing.Gap {
			sign = "⋯"
		}
		c.Label(x+s.cellW/2, c.Y+h/2+4, "mf-m", "middle", sign)
		return
	}
	rows := s.chips[i][j]
	if len(rows) == 0 {
		return // past the end of a folded dimension
	}
	tint := `fill="none"`
	if len(rows) == 1 && rows[0].color != "" {
		tint = fmt.Sprintf(`fill="%s" fill-opacity="0.12"`, rows[0].color)
	}
	c.Add(`<rect class="mf-cell" x="%d" y="%d" width="%d" height="%d" rx="6" %s/>`, x, c.Y, s.cellW, h, tint)
	y := c.Y + (h-len(rows)*(chipH+chipGap)+chipGap)/2
	widest := 0
	for _, r := range rows {
		widest = max(widest, r.width())
	}
	for _, r := range rows {
		r.draw(c, x+(s.cellW-widest)/2, y)
		y += chipH + chipGap
	}
}

func (r chipRow) draw(c *canvas, x, y int) {
	c.Label(x, y+13, "mf-t", "", r.process)
	x += drawing.Runes(r.process)*drawing.CharWidth + 6
	for i, part := range r.parts {
		if i > 0 {
			c.separator(x+chipGap/2, y)
			x += 2 * chipGap
		}
		for _, chip := range part {
			x += c.chip(x, y, chip.id, r.color, chip.first) + chipGap
		}
	}
	if r.more != "" {
		c.Label(x, y+13, "mf-m", "", r.more)
	}
}

// processBars draws which rows every process reads.
func (c *canvas) processBars() {
	all := c.shownReaders()
	if all == nil {
		return
	}
	c.Y += 14
	c.Text(drawing.Margin, "mf-b", "rows of the batch that each process reads")
	c.Y += 2
	name, rows := 0, 0
	for _, r := range all {
		if r != nil {
			name, rows = max(name, drawing.Runes(r.name())), max(rows, drawing.Runes(spansText(r.rows)))
		}
	}
	for _, r := range all {
		if r == nil {
			c.Text(drawing.Margin, "mf-m", "⋮")
			continue
		}
		c.bar(*r, drawing.Margin+(name+2)*drawing.CharWidth, rows)
	}
}

// bar draws the rows of processes that read the same. rows is the width of the
// column of ranges.
func (c *canvas) bar(r readers, x, rows int) {
	line := r.line(c.BatchSize())
	c.Label(drawing.Margin, c.Y+12, "mf-t", "", line[0])
	c.Add(`<rect class="mf-track" x="%d" y="%d" width="%d" height="10" rx="3"/>`, x, c.Y+3, barWidth)
	fill := `class="mf-many"`
	if len(r.processes) == 1 {
		fill = `fill="` + c.color(r.processes[0]) + `"`
	}
	for _, run := range bars(r.rows, int(c.BatchSize())) {
		c.Add(`<rect %s x="%d" y="%d" width="%d" height="10" rx="3"/>`, fill, x+run[0], c.Y+3, max(run[1]-run[0], 1))
	}
	text := strings.Join([]string{line[2] + strings.Repeat(" ", rows-drawing.Runes(line[2])), line[4]}, "  ")
	c.Text(x+barWidth+12, "mf-m", text)
}

// bars returns the ranges of pixels of a bar that ranges of rows cover.
func bars(rows [][2]int, size int) [][2]int {
	var out [][2]int
	for _, r := range rows {
		b := [2]int{share(r[0], barWidth, size), share(r[1], barWidth, size)}
		if n := len(out); n > 0 && b[0] <= out[n-1][1] && r[1]-r[0] < size/barWidth {
			out[n-1][1] = max(out[n-1][1], b[1])
			continue
		}
		out = append(out, b)
	}
	return out
}

// problemList writes the problems.
func (c *canvas) problemList() {
	const width = (drawing.MaxWidth - drawing.Margin) / drawing.CharWidth
	for _, p := range c.Problems() {
		c.Y += 10
		c.Text(drawing.Margin, "mf-"+string(p.Severity), fmt.Sprintf("%s %s at %s", p.Severity, p.Code, wording.Plain(wording.Cut(p.Path, maxPath))))
		for _, line := range drawing.Wrap("", p.Message, width) {
			c.Text(drawing.Margin, "mf-t", line)
		}
		for _, line := range drawing.Wrap("→ ", p.Hint, width) {
			c.Text(drawing.Margin, "mf-m", line)
		}
	}
}
