package diagram

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/internal/drawing"
)

// flow is a row of blocks, such as the operands of a product and the signs between
// them. If the diagram is too narrow, the flow continues in a new row.
type flow []block

// block is a grid of cells, or signs that stand between grids.
type block struct {
	head, foot []string // lines above and below
	rows, cols []string // labels of the grid; nil for none
	cells      [][]cell
	sign       []string // lines of a block without a grid
}

// cell is a cell of a grid.
type cell struct {
	lines []string
	hue   hue
	full  bool // filled with its color in an SVG
	mark  bool // in brackets in a text, and filled with its color in an SVG
}

// hue is a color of the palette, counted from 1; 0 stands for no color. In a text,
// heavy lines separate cells of different hues.
type hue int

func (h hue) color() string { return drawing.Color(int(h) - 1) }

// signs makes a block of lines that stand between two grids.
func signs(lines ...string) block { return block{sign: lines} }

// Sizes of blocks in pixels.
const (
	blockGap  = 18 // between blocks and between rows of blocks
	cellGap   = 4
	cellPad   = 8  // between the border of a cell and its text
	textStep  = 15 // between the lines of a cell
	minCell   = 40 // width
	labelGap  = 8
	headSpace = 6
)

// styles lists ways to write a text, the widest first. The flow uses the first one with
// the fewest rows.
var styles = []struct {
	start bool // columns have only the starts of their ranges as labels
	gap   int  // spaces between blocks
}{{gap: 2}, {start: true, gap: 2}, {start: true, gap: 1}}

// starts shortens the labels of columns that are ranges to their starts.
func (f flow) starts() flow {
	short := slices.Clone(f)
	for i := range short {
		short[i].cols = slices.Clone(short[i].cols)
		for j, label := range short[i].cols {
			if n := strings.IndexByte(label, ':'); n >= 0 {
				short[i].cols[j] = label[:n+1]
			}
		}
	}
	return short
}

// omission is the text of a cell that stands for cells left out.
const omission = "…"

// omitted reports whether a cell stands for cells left out.
func (e *cell) omitted() bool { return len(e.lines) == 1 && e.lines[0] == omission }

// narrowed returns a block that is at most this wide, if possible. It replaces columns
// before the last one by a single column of omissions. widthOf measures a block.
func (b block) narrowed(width int, widthOf func(b *block) int) block {
	for b.cells != nil && len(b.cells[0]) > 3 && widthOf(&b) > width {
		n := len(b.cells[0])
		at := n - 2 // the column to leave out, unless it is the column of omissions
		if b.at(0, at).omitted() {
			at--
		}
		short := b
		short.cols, short.cells = nil, nil
		if b.cols != nil {
			short.cols = slices.Delete(slices.Clone(b.cols), at, at+1)
			short.cols[n-3] = "⋯"
		}
		for _, row := range b.cells {
			row = slices.Delete(slices.Clone(row), at, at+1)
			row[n-3] = cell{lines: []string{omission}}
			short.cells = append(short.cells, row)
		}
		b = short
	}
	return b
}

// pack splits blocks into rows of at most this width. widthOf measures a block.
func (f flow) pack(width, gap int, widthOf func(b *block) int) [][]*block {
	var rows [][]*block
	used := 0
	for i := range f {
		narrow := f[i].narrowed(width, widthOf)
		b := &narrow
		w := widthOf(b)
		if len(rows) == 0 || used+gap+w > width {
			rows = append(rows, nil)
			used = -gap
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], b)
		used += gap + w
	}
	return rows
}

func (f flow) text(width int) []string {
	var rows [][]*block
	gap := 0
	for _, s := range styles {
		blocks := f
		if s.start {
			blocks = f.starts()
		}
		if packed := blocks.pack(width, s.gap, (*block).textWidth); rows == nil || len(packed) < len(rows) {
			rows, gap = packed, s.gap
		}
	}
	var out []string
	for i, row := range rows {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, joined(row, gap)...)
	}
	return out
}

// joined writes blocks beside each other. Their grids are on one level, with the
// heads above and the feet below.
func joined(row []*block, gap int) []string {
	head, body, foot := 0, 0, 0
	for _, b := range row {
		head, body, foot = max(head, len(b.head)), max(body, len(b.body())), max(foot, len(b.foot))
	}
	out := make([]string, head+body+foot)
	at := 0
	for _, b := range row {
		lines := b.body()
		put := func(first int, texts []string) {
			for k, text := range texts {
				line := &out[first+k]
				*line += strings.Repeat(" ", at-drawing.Runes(*line)) + text
			}
		}
		put(head-len(b.head), b.head)
		put(head+(body-len(lines))/2, lines)
		put(head+body, b.foot)
		at += b.textWidth() + gap
	}
	for i, line := range out {
		out[i] = strings.TrimRight(line, " ")
	}
	return out
}

// body returns the lines of the grid or of the signs.
func (b *block) body() []string {
	if b.cells == nil {
		width := widest(b.sign)
		lines := make([]string, len(b.sign))
		for i, s := range b.sign {
			lines[i] = drawing.Center(s, width)
		}
		if b.sign != nil {
			lines = append([]string{""}, lines...) // the labels of columns shift the grids down
		}
		return lines
	}
	lines := b.table().Lines()
	if b.rows == nil {
		for i, line := range lines {
			lines[i] = strings.TrimPrefix(line, " ")
		}
	}
	return lines
}

// textWidth returns the width of a block in characters.
func (b *block) textWidth() int {
	return max(widest(b.body()), widest(b.head), widest(b.foot))
}

// table returns the grid as a table of characters.
func (b *block) table() *drawing.Table {
	t := &drawing.Table{Rows: b.rows, Cols: b.cols, Pad: 1, Dense: len(b.cells) > 16}
	if b.rows == nil {
		t.Rows = make([]string, len(b.cells))
	}
	for _, row := range b.cells {
		lines := make([][]string, len(row))
		for j, c := range row {
			lines[j] = c.lines
			if c.mark {
				lines[j] = []string{"[" + strings.Join(c.lines, " ") + "]"}
			}
		}
		t.Cells = append(t.Cells, lines)
	}
	t.Border = func(i, j, k, m int) drawing.Weight {
		a, c := b.at(i, j), b.at(k, m)
		switch {
		case a == nil && c == nil:
			return drawing.None
		case a == nil || c == nil || a.hue != c.hue && !a.omitted() && !c.omitted():
			return drawing.Heavy
		}
		return drawing.Light
	}
	t.Measure()
	return t
}

// at returns the cell at a position, or nil outside the grid.
func (b *block) at(i, j int) *cell {
	if i < 0 || j < 0 || i >= len(b.cells) || j >= len(b.cells[i]) {
		return nil
	}
	return &b.cells[i][j]
}

// widest returns the width of the widest line.
func widest(lines []string) int {
	n := 0
	for _, line := range lines {
		n = max(n, drawing.Runes(line))
	}
	return n
}

// measures are the sizes of a block in pixels.
type measures struct {
	label   int   // width of the labels of rows
	cellW   int   // width of a cell
	width   int   // width of the whole block
	heights []int // heights of the rows of cells
	height  int   // height of the grid or the signs, with the labels of columns
}

func (b *block) measures() measures {
	m := measures{width: max(widest(b.head), widest(b.foot), widest(b.sign)) * drawing.CharWidth}
	if b.cells == nil {
		m.height = len(b.sign) * textStep
		return m
	}
	if b.rows != nil {
		m.label = widest(b.rows)*drawing.CharWidth + labelGap
	}
	m.cellW = max(widest(b.cols)*drawing.CharWidth+6, minCell)
	for _, row := range b.cells {
		lines := 1
		for _, c := range row {
			lines = max(lines, len(c.lines))
			m.cellW = max(m.cellW, widest(c.lines)*drawing.CharWidth+2*cellPad)
		}
		h := lines*textStep + cellPad
		m.heights = append(m.heights, h)
		m.height += h + cellGap
	}
	m.height -= cellGap
	if b.cols != nil {
		m.height += drawing.LineStep - 2
	}
	m.width = max(m.width, m.label+len(b.cells[0])*(m.cellW+cellGap)-cellGap)
	return m
}

func (f flow) svg(c *drawing.Canvas) {
	width := c.Limit - drawing.Margin
	widthOf := func(b *block) int { return b.measures().width }
	rows := f.pack(width, blockGap, widthOf)
	if short := f.starts().pack(width, blockGap, widthOf); len(short) < len(rows) {
		rows = short
	}
	for i, row := range rows {
		if i > 0 {
			c.Y += blockGap
		}
		drawBlocks(c, row)
	}
}

// drawBlocks draws blocks beside each other, as joined writes them.
func drawBlocks(c *drawing.Canvas, row []*block) {
	head, foot, height := 0, 0, 0
	for _, b := range row {
		head, foot, height = max(head, len(b.head)), max(foot, len(b.foot)), max(height, b.measures().height)
	}
	x, top := drawing.Margin, c.Y
	body := top + head*drawing.LineStep + headSpace
	for _, b := range row {
		m := b.measures()
		for k, line := range b.head {
			class := muted
			if k == 0 {
				class = bold
			}
			c.Label(x, top+(head-len(b.head)+k)*drawing.LineStep+12, class, "", line)
		}
		b.draw(c, x, body+(height-m.height)/2, m)
		for k, line := range b.foot {
			c.Label(x, body+height+k*drawing.LineStep+16, muted, "", line)
		}
		x += m.width + blockGap
	}
	c.Widen(x - blockGap - drawing.Margin)
	c.Y = body + height + foot*drawing.LineStep + 8
}

// draw draws the grid or the signs. Their top left corner is at (x, y).
func (b *block) draw(c *drawing.Canvas, x, y int, m measures) {
	for k, line := range b.sign {
		c.Label(x+m.width/2, y+k*textStep+12, muted, "middle", line)
	}
	if b.cols != nil {
		for j, text := range b.cols {
			c.Label(x+m.label+j*(m.cellW+cellGap)+m.cellW/2, y+11, muted, "middle", text)
		}
		y += drawing.LineStep - 2
	}
	for i, row := range b.cells {
		h := m.heights[i]
		if b.rows != nil {
			c.Label(x+m.label-labelGap, y+h/2+4, muted, "end", b.rows[i])
		}
		for j := range row {
			row[j].draw(c, x+m.label+j*(m.cellW+cellGap), y, m.cellW, h)
		}
		y += h + cellGap
	}
}

func (e *cell) draw(c *drawing.Canvas, x, y, w, h int) {
	class, fill := plain, `fill="none"`
	if e.hue > 0 {
		fill = fmt.Sprintf(`fill="%s" fill-opacity="0.22"`, e.hue.color())
	}
	if e.full || e.mark {
		class, fill = "mf-w", fmt.Sprintf(`fill="%s"`, e.hue.color())
	}
	c.Add(`<rect class="mf-cell" x="%d" y="%d" width="%d" height="%d" rx="6" %s/>`, x, y, w, h, fill)
	first := y + (h-len(e.lines)*textStep)/2 + 12
	for k, line := range e.lines {
		c.Label(x+w/2, first+k*textStep, class, "middle", line)
	}
}
