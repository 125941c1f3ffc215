package layout

import (
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// reporter collects problems.
type reporter struct{ problems []problem.Problem }

func (r *reporter) report(severity problem.Severity, code problem.Code, path, message, hint string, facts ...problem.Fact) {
	r.problems = append(r.problems, problem.Problem{Severity: severity, Code: code, Path: path, Message: message, Hint: hint, Facts: facts})
}

// arrayPath returns the JSON Pointer of an array of the document.
func arrayPath(name string) string { return "/arrays/" + jsontext.Escape(name) }

// fact makes a number of a problem.
func fact(name string, value int64) problem.Fact { return problem.Fact{Name: name, Value: value} }
