package drawing

import (
	"strings"
	"unicode/utf8"
)

// Runes returns the width of a text in characters.
func Runes(s string) int { return utf8.RuneCountInString(s) }

// Gap is the index that stands for elements that a drawing leaves out.
const Gap = -1

// Shown lists the indices of the elements to draw, of n elements. If n exceeds most, it
// lists most indices: the first ones, Gap and the last. Below 3, Gap does not fit.
func Shown(n, most int) []int {
	var list []int
	for i := range min(n, most) {
		list = append(list, i)
	}
	if n > most {
		list[len(list)-1] = n - 1
		if most > 2 {
			list[len(list)-2] = Gap
		}
	}
	return list
}

// Center pads a text on both sides to the given width.
func Center(s string, width int) string {
	left := max(width-Runes(s), 0) / 2
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", max(width-left-Runes(s), 0))
}

// Join joins pieces with two spaces to lines of at most this width. It indents
// every line but the first.
func Join(indent, width int, pieces ...string) []string {
	var lines []string
	line := ""
	for i, p := range pieces {
		switch {
		case i == 0:
			line = p
		case Runes(line)+2+Runes(p) > width:
			lines = append(lines, line)
			line = strings.Repeat(" ", indent) + p
		default:
			line += "  " + p
		}
	}
	return append(lines, line)
}

// Wrap breaks a text into lines of at most this width. The first line begins
// with indent, the others with as many spaces. An empty text has no lines.
func Wrap(indent, text string, width int) []string {
	var lines []string
	line := indent
	for i, word := range strings.Fields(text) {
		if i > 0 && Runes(line)+1+Runes(word) > width {
			lines = append(lines, line)
			line = strings.Repeat(" ", Runes(indent))
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	if text == "" {
		return nil
	}
	return append(lines, line)
}

// columnWidths returns the width of the widest cell of each column.
func columnWidths(lines [][]string) []int {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for j, s := range line {
			width[j] = max(width[j], Runes(s))
		}
	}
	return width
}

// ColumnsWidth returns the width of the lines that Columns returns.
func ColumnsWidth(lines [][]string) int {
	total := -2
	for _, w := range columnWidths(lines) {
		total += w + 2
	}
	return total
}

// Columns aligns the cells of lines in columns, with two spaces between them. For each
// column, align has "<" for left or ">" for right.
func Columns(lines [][]string, align string) []string {
	width := columnWidths(lines)
	out := make([]string, len(lines))
	for i, line := range lines {
		var s strings.Builder
		for j, text := range line {
			space := strings.Repeat(" ", width[j]-Runes(text))
			if align[j] == '<' {
				s.WriteString(text + space + "  ")
			} else {
				s.WriteString(space + text + "  ")
			}
		}
		out[i] = strings.TrimRight(s.String(), " ")
	}
	return out
}
