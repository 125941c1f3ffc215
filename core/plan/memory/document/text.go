package document

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/internal/wording"
)

const (
	width       = 100 // columns of the table
	maxRows     = 100 // arrays of a table: the largest ones
	maxProblems = 10  // problems below a table
)

// The widths of the columns of a table: name, shape, dtype, spec, and bytes.
var columns = [...]int{24, 18, 13, 22, 10}

// Text writes a table of at most 100 columns: the parameters and the batch array by
// array, then the sums, then the problems.
func Text(u *memory.Usage) string {
	b := &strings.Builder{}
	b.WriteString(caption(u) + "\n\n")
	writeLine(b, "array", "shape", "dtype", "spec", "bytes", "copies")
	rows, rest := listed(u)
	for _, r := range rows {
		bytes, copies := sizeOf(r)
		if r.Host != "" {
			copies += " host"
		}
		writeLine(b, r.Name, wording.Shape(r.Shape), r.Element.String(), specOf(r), bytes, copies)
	}
	if rest != "" {
		b.WriteString(rest + "\n")
	}
	b.WriteByte('\n')
	for _, s := range sums(u) {
		if s.note != "" {
			s.note = "  " + s.note
		}
		fmt.Fprintf(b, "%-12s %22s%s\n", s.name, s.text, s.note)
	}
	if !u.Complete() {
		b.WriteString(noSums + "\n")
	}
	for _, text := range problems(u) {
		b.WriteByte('\n')
		wording.WriteWrapped(b, text, width)
	}
	return b.String()
}

// noSums replaces the sums of a tree with errors.
const noSums = "The sums are unknown because of the errors below."

// caption names the devices: "memory of each of 8 devices (data=4, model=2)".
func caption(u *memory.Usage) string {
	devices := wording.Count(int64(u.Tree.Mesh.Size()), "device", "devices")
	if u.Tree.Mesh.Size() > 1 {
		devices = "each of " + devices
	}
	if axes := describeMesh(u.Tree); axes != "" {
		devices += " (" + wording.Cut(axes, width-40) + ")"
	}
	return "memory of " + devices
}

// describeMesh writes the axes of the mesh, such as data=4, model=2.
func describeMesh(t *memory.Tree) string {
	text := ""
	for i, a := range t.Mesh.Axes() {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s=%d", wording.Plain(a.Name), a.Size)
	}
	return text
}

// listed returns the rows of the table, and a text about the rest.
func listed(u *memory.Usage) (rows []memory.Row, rest string) {
	all := slices.Concat(u.Parameters, u.Batch)
	if u.Tree.Optimizer == memory.NoOptimizer {
		all = slices.Concat(u.Parameters, u.States, u.Batch)
	}
	least, left := bound(all)
	for _, r := range all {
		if r.Bytes < least || r.Bytes == least && left == 0 {
			continue
		}
		if r.Bytes == least {
			left--
		}
		rows = append(rows, r)
	}
	if n := len(all) - len(rows); n > 0 {
		rest = "… and " + wording.Count(int64(n), "array", "arrays") + ", none larger"
	}
	return rows, rest
}

// sizeOf writes the bytes of a row and the number of devices with the same part.
func sizeOf(r memory.Row) (bytes, copies string) {
	if r.Part == nil {
		return "unknown", ""
	}
	return wording.Bytes(r.Bytes), wording.Thousands(r.Copies)
}

// problems writes the problems below a table.
func problems(u *memory.Usage) (texts []string) {
	for _, p := range u.Problems[:min(len(u.Problems), maxProblems)] {
		texts = append(texts, p.Text())
	}
	if rest := len(u.Problems) - maxProblems; rest > 0 {
		texts = append(texts, "… and "+wording.Count(int64(rest), "problem", "problems"))
	}
	return texts
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

// fit shortens a cell to at most this many characters.
func fit(cell string, most int) string {
	if utf8.RuneCountInString(cell) <= most {
		return cell
	}
	return string([]rune(cell)[:most-1]) + "…"
}

// tooSmall is the note about a device with less memory than a step needs.
const tooSmall = "does not fit"

// sum is a line of the sums. Its bytes are low, or from low to high.
type sum struct {
	name       string
	low, high  int64
	text, note string
}

// sums lists the sums. If a spec does not fit or a size is too large, it lists none.
func sums(u *memory.Usage) (list []sum) {
	if !u.Complete() {
		return nil
	}
	t := u.Totals
	add := func(name string, bytes memory.Interval, note string) {
		list = append(list, sum{name, bytes.Low, bytes.High, interval(bytes), note})
	}
	one := func(bytes int64) memory.Interval { return memory.Interval{Low: bytes, High: bytes} }
	optimizer := u.Tree.Optimizer.String()
	if u.Tree.Master.Valid() {
		optimizer = strings.TrimLeft(optimizer+", ", ", ") + "with a master copy in " + u.Tree.Master.String()
	}
	add("parameters", one(t.Parameters), wording.Count(t.Count, "parameter", "parameters"))
	if len(u.States) > 0 {
		add("optimizer", one(t.States), optimizer)
	}
	if len(u.Batch) > 0 {
		add("batch", one(t.Batch), "")
	}
	add("stored", one(t.Stored), "exact")
	if t.Gradients > 0 {
		add("gradients", one(t.Gradients), "within a step, unless the compiler frees them early")
	}
	if t.Host > 0 {
		add("host", one(t.Host), "in the memory of the host, for each device")
	}
	if a := u.Tree.Activations; a != nil {
		add("activations", *a, "the compiler chooses")
	}
	verdict := ""
	if fits, known := u.Fits(); known {
		verdict = map[bool]string{true: "fits", false: tooSmall}[fits]
	}
	if t.Peak != nil {
		add("peak", *t.Peak, "")
	}
	if c := u.Tree.Capacity; c > 0 {
		add("capacity", one(c), verdict)
	}
	return list
}

func interval(i memory.Interval) string {
	if i.Low == i.High {
		return wording.Bytes(i.Low)
	}
	return wording.Bytes(i.Low) + " to " + wording.Bytes(i.High)
}
