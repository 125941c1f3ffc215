package document

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/internal/wording"
)

const maxRows = 32 // processes that a table lists

// Text writes the sentences of a report and its tables, in at most 100 columns.
func Text(r *diagnosis.Report) string {
	b := &strings.Builder{}
	for _, s := range r.Sentences {
		wording.WriteWrapped(b, s, width)
	}
	fmt.Fprintf(b, "\n%-10s %10s %11s\n", "part", "a batch", "of the time")
	for _, p := range r.Parts {
		fmt.Fprintf(b, "%-10s %10s %11s  %s\n", indent(p.Name), diagnosis.Duration(p.Time.Seconds()), diagnosis.Percent(p.Share), p.Note)
	}
	rows, rest := processes(r)
	if len(rows) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	for _, row := range append([][]string{heads}, rows...) {
		fmt.Fprintf(b, "%7s %10s %10s %10s %13s  %-15s %s\n", row[0], row[1], row[2], row[3], row[4], row[5], row[6])
	}
	if rest != "" {
		b.WriteString(rest + "\n")
	}
	return b.String()
}

// inside has the names of the parts of build.
var inside = map[string]bool{"storage": true, "decode": true, "map": true, "gather": true, "other": true}

// indent returns the name of a part, indented if it is a part of build.
func indent(name string) string {
	if inside[name] {
		return "  " + name
	}
	return name
}

// heads are the titles of the table of processes.
var heads = []string{"process", "batches", "waited", "step", "devices idle", "bound", "measured"}

// processes returns the cells of the table of processes, and a text about the rest. If the
// processes are many, the table lists the late ones and the first of the others.
func processes(r *diagnosis.Report) (rows [][]string, rest string) {
	for _, p := range r.Processes {
		if len(rows) == maxRows && p.Process != r.Process {
			continue
		}
		measured, idle := "now", "unknown"
		if p.Age > 0 {
			measured = diagnosis.Duration(p.Age.Seconds()) + " ago"
		}
		if p.Idle >= 0 {
			idle = diagnosis.Duration(p.Idle.Seconds())
		}
		rows = append(rows, []string{
			strconv.Itoa(p.Process), wording.Thousands(p.Batches), diagnosis.Percent(p.Waited),
			diagnosis.Duration(p.Step.Seconds()), idle, string(p.Bound), measured,
		})
	}
	if n := len(r.Processes) - len(rows); n > 0 {
		rest = "… and " + wording.Count(int64(n), "process", "processes")
	}
	return rows, rest
}

// width is the largest number of columns of a line.
const width = 100
