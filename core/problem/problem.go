// Package problem has the type of a fault in a document, as layouts, memory and the
// planner report it. Unlike a Go error, a [Problem] does not end a check, so a report
// lists all problems. Only problems of severity [Error] keep the document from running.
package problem

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Severity is the importance of a problem.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // what the document describes cannot run
	Warning Severity = "warning" // it can run, but is probably not what was meant
	Info    Severity = "info"    // no mistake, but the user may want to know it
)

// Code names a kind of problem. Codes are stable, so programs may compare them.
type Code string

// Problem is an error, a warning or a remark about a document.
type Problem struct {
	Severity Severity
	Code     Code
	Path     string // JSON Pointer into the document
	Message  string // what was expected, and what was found
	Hint     string // what to do
	Facts    []Fact // the numbers in the message, for programs
}

// Fact is a number in the message of a problem.
type Fact struct {
	Name  string // what the number counts, such as "bytes"
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

// Text returns "severity: message; hint", for a report that people read.
func (p Problem) Text() string {
	s := string(p.Severity) + ": " + p.Message
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// Err returns the problem as an InvalidArgument error of an operation, with the code,
// the path and the facts as attributes.
func (p Problem) Err(op string) error {
	e := status.New(status.InvalidArgument, op, p.Message).With("code", string(p.Code)).With("path", p.Path)
	e.Hint = p.Hint
	for _, f := range p.Facts {
		e = e.With(f.Name, f.Value)
	}
	return e
}

// Write writes the problem as a JSON object.
func (p Problem) Write(w *jsontext.Writer) {
	w.Open('{')
	w.Key("severity").String(string(p.Severity))
	w.Key("code").String(string(p.Code))
	w.Key("path").String(p.Path)
	w.Key("message").String(p.Message)
	w.Key("hint").String(p.Hint)
	w.Key("facts").Open('{')
	for _, f := range p.Facts {
		w.Key(f.Name).Int(f.Value)
	}
	w.Close('}')
	w.Close('}')
}
