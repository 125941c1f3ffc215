package document

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/memory"
	"github.com/meshfeed/meshfeed/internal/wording"
)

const (
	width       = 100 // columns of the table
	maxRows     = 100 // arrays of a table; of more, the largest are listed
	maxProblems = 10  // problems below a table
)

// The widths of the columns of a table: name, shape, dtype, spec, and bytes.
var columns = [...]int{24, 18, 13, 22, 10}

// Text writes a table of at most 100 columns: the parameters and the batch array by
// array, then the sums, then the problems.
func Text(u *memory.Usage) string {
	b := &strings.Builder{}
	devices := wording.Count(int64(u.Tree.Mesh.Size()), "device", "devices")
	if u.Tree.Mesh.Size() > 1 {
		devices = "each of " + devices
	}
	if axes := describeMesh(u.Tree); axes != "" {
		devices += " (" + wording.Cut(axes, width-40) + ")"
	}
	fmt.Fprintf(b, "memory of %s\n\n", devices)
	writeLine(b, "array", "shape", "dtype", "spec", "bytes", "copies")
	rows := slices.Concat(u.Parameters, u.Batch)
	if u.Tree.Optimizer == memory.NoOptimizer {
		rows = slices.Concat(u.Parameters, u.States, u.Batch)
	}
	least, left := bound(rows)
	for _, r := range rows {
		if r.Bytes < least || r.Bytes == least && left == 0 {
			continue
		}
		if r.Bytes == least {
			left--
		}
		bytes, copies := "unknown", ""
		if r.Part != nil {
			bytes, copies = wording.Bytes(r.Bytes), wording.Thousands(r.Copies)
		}
		if r.Host {
			copies += " host"
		}
		writeLine(b, r.Name, wording.Shape(r.Shape), r.Element.String(), specOf(r), bytes, copies)
	}
	if rest := len(rows) - maxRows; rest > 0 {
		fmt.Fprintf(b, "… and %s, each smaller\n", wording.Count(int64(rest), "array", "arrays"))
	}
	b.WriteByte('\n')
	if u.Complete() {
		writeSums(b, u)
	} else {
		b.WriteString("The sums are unknown because of the errors below.\n")
	}
	for _, p := range u.Problems[:min(len(u.Problems), maxProblems)] {
		b.WriteByte('\n')
		text := p.Severity + ": " + p.Message
		if p.Hint != "" {
			text += "; " + p.Hint
		}
		writeWrapped(b, text)
	}
	if rest := len(u.Problems) - maxProblems; rest > 0 {
		fmt.Fprintf(b, "\n… and %s\n", wording.Count(int64(rest), "problem", "problems"))
	}
	return b.String()
}

// bound returns the size of the smallest array that a table lists, and how many
// arrays of this size it lists.
func bound(rows []memory.Row) (least int64, number int) {
	if len(rows) <= maxRows {
		return 0, len(rows)
	}
	sizes := make([]int64, len(rows))
	for i, r := range rows {
		sizes[i] = -r.Bytes
	}
	slices.Sort(sizes)
	least = -sizes[maxRows-1]
	for _, size := range sizes[:maxRows] {
		if -size == least {
			number++
		}
	}
	return least, number
}

func specOf(r memory.Row) string {
	if r.Shard != nil {
		return "parts " + wording.Shape(r.Shard)
	}
	return wording.Plain(r.Spec.String())
}

// writeLine writes a row of the table. The bytes are on the right of their column.
func writeLine(b *strings.Builder, cells ...string) {
	line := ""
	for i, w := range columns {
		cell := fit(wording.Plain(cells[i]), w)
		pad := strings.Repeat(" ", w-utf8.RuneCountInString(cell))
		if i == len(columns)-1 {
			cell, pad = pad+cell, ""
		}
		line += cell + pad + " "
	}
	b.WriteString(strings.TrimRight(line+cells[len(columns)], " ") + "\n")
}

// fit shortens a cell to a number of characters.
func fit(cell string, most int) string {
	if utf8.RuneCountInString(cell) <= most {
		return cell
	}
	return string([]rune(cell)[:most-1]) + "…"
}

func writeSums(b *strings.Builder, u *memory.Usage) {
	t := u.Totals
	sum := func(name, bytes, note string) {
		if note != "" {
			note = "  " + note
		}
		fmt.Fprintf(b, "%-12s %22s%s\n", name, bytes, note)
	}
	optimizer := u.Tree.Optimizer.String()
	if u.Tree.Master.Valid() {
		optimizer = strings.TrimLeft(optimizer+", ", ", ") + "with a master copy in " + u.Tree.Master.String()
	}
	sum("parameters", wording.Bytes(t.Parameters), wording.Count(t.Count, "parameter", "parameters"))
	if len(u.States) > 0 {
		sum("optimizer", wording.Bytes(t.States), optimizer)
	}
	if len(u.Batch) > 0 {
		sum("batch", wording.Bytes(t.Batch), "")
	}
	sum("stored", wording.Bytes(t.Stored), "exact")
	if t.Gradients > 0 {
		sum("gradients", wording.Bytes(t.Gradients), "within a step, unless the compiler frees them early")
	}
	if t.Host > 0 {
		sum("host", wording.Bytes(t.Host), "in the memory of the host, for each device")
	}
	if a := u.Tree.Activations; a != nil {
		sum("activations", interval(*a), "the compiler chooses")
	}
	verdict := ""
	if fits, known := u.Fits(); known {
		verdict = map[bool]string{true: "fits", false: "does not fit"}[fits]
	}
	if t.Peak != nil {
		sum("peak", interval(*t.Peak), "")
	}
	if c := u.Tree.Capacity; c > 0 {
		sum("capacity", wording.Bytes(c), verdict)
	}
}

func interval(i memory.Interval) string {
	if i.Low == i.High {
		return wording.Bytes(i.Low)
	}
	return wording.Bytes(i.Low) + " to " + wording.Bytes(i.High)
}

// writeWrapped writes a text in lines of at most width columns.
func writeWrapped(b *strings.Builder, text string) {
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
}
