package document

import (
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// Columns is the largest width of the text of [Text].
const Columns = 100

// Text writes a report as text of at most Columns columns. After a table of candidates
// it says why the others are not the best. Then come the step of the best candidate,
// what it needs of the input, and what the numbers assume.
func Text(d *strategy.Document, r *strategy.Report) string {
	p := &printer{unit: unitOf(r)}
	p.paragraph("", question(d, r))
	p.paragraph("", answer(r))
	for _, problem := range r.Problems {
		p.paragraph("", problem.Text())
	}
	p.candidates(r)
	first := []section{
		{title: axesTitle, rows: usedAxes(r), sides: "ll"},
		{title: "Columns", rows: notes(r), sides: "ll"},
		{title: "Why", lines: reasons(r)},
	}
	for _, s := range append(first, sections(r)...) {
		if len(s.rows)+len(s.lines) == 0 {
			continue
		}
		p.out.WriteByte('\n')
		p.paragraph("", s.title+":")
		for _, line := range append(s.lines, indented(aligned(s.rows, s.sides)...)...) {
			p.paragraph(line.mark, line.text)
		}
	}
	return p.out.String()
}

// printer collects the lines of a text.
type printer struct {
	out  strings.Builder
	unit timeUnit
}

// paragraph writes a mark, such as the number of a candidate, and after it a text. It
// breaks lines between words, and indents them by the width of the mark.
func (p *printer) paragraph(mark, text string) {
	indent := columnsOf(mark)
	p.out.WriteString(mark)
	for i, line := range wrap(text, Columns-indent) {
		if i > 0 {
			p.out.WriteString(strings.Repeat(" ", indent))
		}
		p.out.WriteString(line)
		p.out.WriteByte('\n')
	}
}

// columnsOf returns the width of a text in characters.
func columnsOf(s string) int { return len([]rune(s)) }

// noBreak is a space that wrap does not break a line at. wrap replaces it by a plain
// space.
const noBreak = "\u00a0"

// wrap breaks a text into lines of at most width columns. It breaks a word only if
// the word is longer than a line.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.SplitSeq(text, " ") {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case columnsOf(*last)+1+columnsOf(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
		for rest := []rune(lines[len(lines)-1]); len(rest) > width; {
			lines[len(lines)-1] = string(rest[:width])
			rest = rest[width:]
			lines = append(lines, string(rest))
		}
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], noBreak, " ")
	}
	return lines
}

func (p *printer) candidates(r *strategy.Report) {
	if len(r.Candidates) == 0 {
		return
	}
	p.out.WriteByte('\n')
	p.paragraph("", caption(p.unit)+":")
	rows := make([][]string, len(r.Candidates)+1)
	widths := make([]int, len(columns))
	for i := range rows {
		for j, c := range columns {
			cell := c.title
			if i > 0 {
				cell = c.cell(p.unit, i-1, &r.Candidates[i-1])
			}
			rows[i] = append(rows[i], cell)
			widths[j] = max(widths[j], columnsOf(cell))
		}
	}
	rest := Columns - len(columns) + 1
	for j, w := range widths {
		if j != meshColumn {
			rest -= w
		}
	}
	widths[meshColumn] = min(widths[meshColumn], max(rest, leastColumn))
	for _, row := range rows {
		p.row(row, widths)
	}
}

// row writes a row of the table of candidates. A mesh may take several lines.
func (p *printer) row(cells []string, widths []int) {
	for i, axes := range wrap(cells[meshColumn], widths[meshColumn]) {
		line := ""
		for j, c := range columns {
			cell := ""
			switch {
			case j == meshColumn:
				cell = axes
			case i == 0:
				cell = cells[j]
			}
			space := strings.Repeat(" ", widths[j]-columnsOf(cell))
			if c.right {
				line += space + cell + " "
			} else {
				line += cell + space + " "
			}
		}
		p.out.WriteString(strings.TrimRight(line, " "))
		p.out.WriteByte('\n')
	}
}
