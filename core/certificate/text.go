package certificate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// maxListed is the number of runs that a text lists.
const maxListed = 16

// String lists the runs, and what is missing or came twice up to the last position
// that was delivered. Unlike Check, it does not check the evidence.
func (c Certificate) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "certificate of %s, seed %d, over %s of dataset %s\n", c.Order, c.Seed, counted(c.Records, "record"), c.Dataset)
	if len(c.Commits) > 0 {
		fmt.Fprintf(&b, "  of the files of %s\n", strings.Join(c.Commits, ", "))
	}
	for i, r := range c.runs {
		if i == maxListed {
			fmt.Fprintf(&b, "  and %s more\n", counted(int64(len(c.runs)-i), "run"))
			break
		}
		fmt.Fprintf(&b, "  run %d, %s\n", i+1, r)
	}
	b.WriteString("  " + c.verdict())
	return b.String()
}

func (c Certificate) verdict() string {
	coverage, err := c.Coverage(Cursor{}, c.Last())
	if err != nil {
		return "not complete: " + err.Error()
	}
	if wrong, _ := coverage.wrong(); wrong != nil {
		return "not complete: " + strings.Join(wrong, "; ")
	}
	return fmt.Sprintf("up to %s nothing is missing and nothing came twice; check compares the records", coverage.Last)
}

// String writes the run in one line.
func (r Run) String() string {
	var parts []string
	for _, p := range []struct {
		what  string
		spans []Span
	}{{"delivered", r.Delivered}, {"dropped", r.Dropped}, {"skipped", r.Skipped}} {
		if len(p.spans) > 0 {
			parts = append(parts, p.what+" "+list(p.spans))
		}
	}
	return fmt.Sprintf("%s of %d: %s", r.Processes, r.Mesh.count(), strings.Join(parts, "; "))
}

// check returns a DataLoss error if anything is wrong.
func (c Coverage) check() error {
	wrong, hints := c.wrong()
	if wrong == nil {
		return nil
	}
	return fail(status.DataLoss, "%s", strings.Join(wrong, "; ")).WithHint("%s", strings.Join(hints, "; "))
}

// wrong lists what is wrong, and for each kind of fault a hint what to do.
func (c Coverage) wrong() (wrong, hints []string) {
	if len(c.Delivered) == 0 {
		return []string{"nothing was delivered"}, []string{"take the certificate after the loop, and add the certificates of all processes and runs"}
	}
	if n := total(c.Missing); len(c.Missing) > 0 {
		wrong = append(wrong, fmt.Sprintf("%s missing: %s", are(n), list(c.Missing)))
		hints = append(hints, "add the certificate of the run that delivered them, saved together with the state from which the next run began")
	}
	for i, f := range c.Repeated[:min(len(c.Repeated), shown)] {
		wrong = append(wrong, fmt.Sprintf("%s delivered %s more than once: %s", f.subject(), counted(total(f.Spans), "position"), list(f.Spans)))
		if i == 0 {
			hints = append(hints, "add each certificate once; restore and seek deliver again what comes after the position to which they go")
		}
	}
	for i, f := range c.Absent[:min(len(c.Absent), shown)] {
		wrong = append(wrong, fmt.Sprintf("%s did not deliver %s that others did: %s", f.subject(), counted(total(f.Spans), "position"), list(f.Spans)))
		if i == 0 {
			hints = append(hints, "add the certificates of all processes; if all are there, these stopped earlier")
		}
	}
	return wrong, hints
}

// subject names the processes of a fault.
func (f Fault) subject() string {
	switch {
	case f.All && f.Of == 1:
		return "the process"
	case f.All:
		return "all processes"
	}
	return fmt.Sprintf("%s of %d", f.Processes, f.Of)
}

func total(spans []Span) int64 {
	n, ok := positions(spans)
	if !ok {
		return maxCount
	}
	return n
}

func are(n int64) string {
	if n == 1 {
		return "1 position is"
	}
	return counted(n, "position") + " are"
}

func counted(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(n, 10) + " " + what
}
