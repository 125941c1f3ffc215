package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/internal/drawing"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// stripWidth is the number of characters of the strip that shows rows.
const stripWidth = 16

// readers are processes that read the same rows.
type readers struct {
	processes []int // sorted
	known     bool  // rows are known
	rows      [][2]int
	devices   [2]int   // devices of each process: the least and the most
	bytes     [2]int64 // per step of each process: the least and the most
}

// groupOf returns the number of the group of the n-th process. Groups are numbered
// in the order of their first process. If the rows are not known, every process is
// a group.
func (l *view) groupOf(n int) int {
	if g := l.ProcessCosts(n).Group; g >= 0 {
		return g
	}
	return n
}

// add adds the n-th process of the mesh, which has id p.
func (r *readers) add(l *view, n, p int) {
	c, devices := l.ProcessCosts(n), len(l.mesh.Owned(n))
	if len(r.processes) == 0 {
		r.known, r.rows = c.Group >= 0, c.Rows
		r.devices, r.bytes = [2]int{devices, devices}, [2]int64{c.ReadBytes, c.ReadBytes}
	}
	r.processes = append(r.processes, p)
	r.devices = [2]int{min(r.devices[0], devices), max(r.devices[1], devices)}
	r.bytes = [2]int64{min(r.bytes[0], c.ReadBytes), max(r.bytes[1], c.ReadBytes)}
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
		parts = append(parts, "p"+strconv.Itoa(p))
	}
	return strings.Join(parts, " ")
}

// line returns the columns of the process table: name, devices, rows, strip and
// bytes.
func (r readers) line(batch int64) []string {
	devices, bytes, strips := strconv.Itoa(r.devices[0]), wording.Bytes(r.bytes[0]), "?"
	if r.devices[0] < r.devices[1] {
		devices += "–" + strconv.Itoa(r.devices[1])
	}
	if r.bytes[0] < r.bytes[1] {
		bytes += " – " + wording.Bytes(r.bytes[1])
	}
	if len(r.processes) > 1 {
		bytes += " each"
	}
	if r.known {
		strips = "▕" + strip(r.rows, int(batch)) + "▏"
	}
	return []string{r.name(), devices, spansText(r.rows), strips, bytes}
}

// shownReaders returns the groups of processes to draw, with nil where some are left out.
// It returns nil if the costs are not known or the layout has no batch.
func (l *view) shownReaders() []*readers {
	if !l.totals.Known() || len(l.processes) == 0 || l.BatchShape() == nil {
		return nil
	}
	groups, most := 0, fewDevices
	for n := range l.processes {
		groups = max(groups, l.groupOf(n)+1)
	}
	if l.mesh.Size() > fewDevices {
		most = 2 * maxSide
	}
	var list []*readers
	drawn := map[int]*readers{}
	for _, g := range drawing.Shown(groups, most) {
		if g == drawing.Gap {
			list = append(list, nil)
			continue
		}
		drawn[g] = &readers{}
		list = append(list, drawn[g])
	}
	for n, p := range l.processes {
		if r := drawn[l.groupOf(n)]; r != nil {
			r.add(l, n, p)
		}
	}
	return list
}

// processTable writes which rows every process reads.
func (t *page) processTable() {
	all := t.shownReaders()
	if all == nil {
		return
	}
	lines := [][]string{{"process", "devices", "rows read", "", "per step"}}
	for _, r := range all {
		if r == nil {
			lines = append(lines, []string{"⋮", "⋮", "⋮", "", "⋮"})
		} else {
			lines = append(lines, r.line(t.BatchSize()))
		}
	}
	t.out.WriteByte('\n')
	if drawing.ColumnsWidth(lines) > t.Width { // the strips only repeat the ranges
		for i, line := range lines {
			lines[i] = slices.Delete(line, 3, 4)
		}
		t.write(drawing.Columns(lines, "<>><")...)
		return
	}
	t.write(drawing.Columns(lines, "<>><<")...)
}

// strip shows which rows of a batch the ranges contain. A character stands for
// several rows: the ranges contain all of them, some, or none.
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

// share returns i/n of size.
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
		parts = append(parts, wording.Span(r[0], r[1]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

// problemList writes the problems.
func (t *page) problemList() {
	if len(t.Problems()) == 0 {
		return
	}
	t.out.WriteByte('\n')
	for _, p := range t.Problems() {
		t.out.WriteString(fmt.Sprintf("%s %s at %s\n", p.Severity, p.Code, wording.Plain(wording.Cut(p.Path, maxPath))))
		t.write(drawing.Wrap("  ", p.Message, t.Width)...)
		t.write(drawing.Wrap("  → ", p.Hint, t.Width)...)
	}
}
