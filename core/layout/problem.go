package layout

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Severity is the importance of a problem.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the layout cannot be loaded
	Warning Severity = "warning" // the layout works, but is probably not what was meant
	Info    Severity = "info"    // no mistake, but the user may want to know it
)

// Code names a kind of problem. Codes are stable, so programs may compare them.
type Code string

// Problem is an error, a warning or a remark about a layout.
type Problem struct {
	Severity Severity
	Code     Code
	Path     string // JSON Pointer into the document
	Message  string // what was expected, and what was found
	Hint     string // what to do
	Facts    []Fact // the numbers in the message, for programs
}

// Fact is a number of a problem.
type Fact struct {
	Name  string
	Value int64
}

// String returns "severity code path: message; hint".
func (p Problem) String() string {
	s := fmt.Sprintf("%s %s %s: %s", p.Severity, p.Code, p.Path, p.Message)
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// Err returns the problem as an InvalidArgument error, with the code, the path and
// the facts as attributes.
func (p Problem) Err() error {
	e := status.New(status.InvalidArgument, "layout", p.Message).With("code", string(p.Code)).With("path", p.Path)
	e.Hint = p.Hint
	for _, f := range p.Facts {
		e = e.With(f.Name, f.Value)
	}
	return e
}

// reporter collects problems.
type reporter struct{ problems []Problem }

func (r *reporter) report(severity Severity, code Code, path, message, hint string, facts ...Fact) {
	r.problems = append(r.problems, Problem{severity, code, path, message, hint, facts})
}

// arrayPath returns the JSON Pointer of an array of the document.
func arrayPath(name string) string { return "/arrays/" + jsontext.Escape(name) }
