package layout

import (
	"fmt"
	"slices"
	"strings"
)

// stripWidth is the width of the strip that shows rows of the batch.
const stripWidth = 16

// readers are processes that read the same rows.
type readers struct {
	processes []int // sorted
	rows      [][2]int
	devices   [2]int   // of each process: the least and the most
	bytes     [2]int64 // per step of each process: the least and the most
}

// readers groups the processes by the rows they read, in the order of their
// first process; every process alone where the rows are not known.
func (l *Layout) readers() []readers {
	var list []readers
	number := map[int32]int{}
	for n, p := range l.processes {
		group := int32(n)
		if l.costs.rows.known {
			group = l.costs.rows.group[n]
		}
		devices, bytes := len(l.mesh.Owned(n)), l.costs.processes[n]
		i, ok := number[group]
		if !ok {
			i = len(list)
			number[group] = i
			list = append(list, readers{devices: [2]int{devices, devices}, bytes: [2]int64{bytes, bytes}})
			if l.costs.rows.known {
				list[i].rows = l.costs.rows.of(n)
			}
		}
		r := &list[i]
		r.processes = append(r.processes, p)
		r.devices = [2]int{min(r.devices[0], devices), max(r.devices[1], devices)}
		r.bytes = [2]int64{min(r.bytes[0], bytes), max(r.bytes[1], bytes)}
	}
	return list
}

// name lists the processes: "p0", "p0 p2", "p0…p511", "p0 p2 +6".
func (r readers) name() string {
	const most = 4
	n := len(r.processes)
	first, last := r.processes[0], r.processes[n-1]
	if n > 2 && last-first == n-1 {
		return fmt.Sprintf("p%d…p%d", first, last)
	}
	parts := make([]string, 0, most)
	for i, p := range r.processes {
		if i == most-1 && n > most {
			parts = append(parts, fmt.Sprintf("+%d", n-i))
			break
		}
		parts = append(parts, "p"+itoa(p))
	}
	return strings.Join(parts, " ")
}

func (r readers) line(l *Layout) []string {
	devices, bytes, strips := itoa(r.devices[0]), bytesText(r.bytes[0]), "?"
	if r.devices[0] < r.devices[1] {
		devices += "–" + itoa(r.devices[1])
	}
	if r.bytes[0] < r.bytes[1] {
		bytes += " – " + bytesText(r.bytes[1])
	}
	if len(r.processes) > 1 {
		bytes += " each"
	}
	if l.costs.rows.known {
		strips = "▕" + strip(r.rows, int(l.BatchSize())) + "▏"
	}
	return []string{r.name(), devices, spansText(r.rows), strips, bytes}
}

func (t *page) processTable() {
	if !t.costs.known || len(t.processes) == 0 || t.doc.Batch == nil {
		return
	}
	all, most := t.readers(), roomy
	if t.mesh.Size() > roomy {
		most = 2 * maxSide
	}
	lines := [][]string{{"process", "devices", "rows read", "", "per step"}}
	for _, i := range shown(len(all), most) {
		if i == gap {
			lines = append(lines, []string{"⋮", "⋮", "⋮", "", "⋮"})
		} else {
			lines = append(lines, all[i].line(t.Layout))
		}
	}
	t.out.WriteByte('\n')
	if tableWidth(lines) > t.Width { // the strips repeat in pictures what the ranges say
		for i, line := range lines {
			lines[i] = slices.Delete(line, 3, 4)
		}
		t.columns(lines, "<>><")
		return
	}
	t.columns(lines, "<>><<")
}

// columnWidths gives the characters of the widest cell of each column.
func columnWidths(lines [][]string) []int {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for j, s := range line {
			width[j] = max(width[j], runes(s))
		}
	}
	return width
}

// tableWidth gives the characters of a whole line, with two between columns.
func tableWidth(lines [][]string) int {
	total := -2
	for _, w := range columnWidths(lines) {
		total += w + 2
	}
	return total
}

// columns writes lines with aligned columns: "<" to the left, ">" to the right.
func (t *page) columns(lines [][]string, align string) {
	width := columnWidths(lines)
	for _, line := range lines {
		var s strings.Builder
		for j, text := range line {
			space := strings.Repeat(" ", width[j]-runes(text))
			if align[j] == '<' {
				s.WriteString(text + space + "  ")
			} else {
				s.WriteString(space + text + "  ")
			}
		}
		t.out.WriteString(strings.TrimRight(s.String(), " ") + "\n")
	}
}

// strip shows which rows of a batch are among the ranges: all of those that a
// character stands for, some, or none.
func strip(rows [][2]int, size int) string {
	var s strings.Builder
	width := min(stripWidth, size)
	for i := range width {
		start, stop := share(i, size, width), share(i+1, size, width)
		covered := 0
		for _, r := range rows {
			covered += max(0, min(r[1], stop)-max(r[0], start))
		}
		switch covered {
		case 0:
			s.WriteRune('·')
		case stop - start:
			s.WriteRune('█')
		default:
			s.WriteRune('▒')
		}
	}
	return s.String()
}

// share gives i/n of size.
func share(i, size, n int) int { return size/n*i + size%n*i/n }

// spansText lists the first few ranges.
func spansText(rows [][2]int) string {
	const most = 3
	var parts []string
	for i, r := range rows {
		if i == most-1 && len(rows) > most {
			parts = append(parts, fmt.Sprintf("+%d", len(rows)-i))
			break
		}
		parts = append(parts, spanText(r[0], r[1]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

func (t *page) problemList() {
	if len(t.problems) == 0 {
		return
	}
	t.out.WriteByte('\n')
	for _, p := range t.problems {
		t.out.WriteString(fmt.Sprintf("%s %s at %s\n", p.Severity, p.Code, plain(short(p.Path))))
		for _, line := range append(wrap("  ", p.Message, t.Width), wrap("  → ", p.Hint, t.Width)...) {
			t.out.WriteString(line + "\n")
		}
	}
}

// wrap breaks text into lines of at most this width; the first is indented by
// indent, the others by as many spaces. Of empty text there is no line.
func wrap(indent, text string, width int) []string {
	var lines []string
	line := indent
	for i, word := range strings.Fields(text) {
		if i > 0 && runes(line)+1+runes(word) > width {
			lines = append(lines, line)
			line = strings.Repeat(" ", runes(indent))
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
