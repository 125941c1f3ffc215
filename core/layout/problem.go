package layout

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/status"
)

// Severity says how much a problem matters.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the layout cannot be loaded
	Warning Severity = "warning" // it can, but is probably not what was meant
	Info    Severity = "info"    // worth knowing
)

// Code names a kind of problem. Codes are stable: programs may compare them.
type Code string

// Problem is something wrong with a layout, or worth knowing about it.
type Problem struct {
	Severity Severity
	Code     Code
	Path     string // JSON Pointer into the document
	Message  string // expected and actual
	Hint     string // what to do
	Facts    []Fact // the numbers of the message
}

// Fact is a number of a problem.
type Fact struct {
	Name  string
	Value int64
}

// String gives "severity code path: message; hint".
func (p Problem) String() string {
	s := fmt.Sprintf("%s %s %s: %s", p.Severity, p.Code, p.Path, p.Message)
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

func (p Problem) err() *status.Error {
	e := status.New(status.InvalidArgument, "layout", p.Message).With("code", string(p.Code)).With("path", p.Path)
	e.Hint = p.Hint
	for _, f := range p.Facts {
		e = e.With(f.Name, f.Value)
	}
	return e
}

// report adds a problem to the layout.
func (l *Layout) report(severity Severity, code Code, path, message, hint string, facts ...Fact) {
	l.problems = append(l.problems, Problem{severity, code, path, message, hint, facts})
}

// fail gives the error of a document of which nothing can be worked out.
func fail(path, format string, args ...any) *status.Error {
	if path != "" {
		format = "%s: " + format
		args = append([]any{short(path)}, args...)
	}
	return status.Errorf(status.InvalidArgument, "layout", format, args...).With("path", path)
}
