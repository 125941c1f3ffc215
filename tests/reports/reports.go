// Package reports checks for tests what all reports on documents have in common: their
// errors have a path, the JSON is valid, and lines are short.
package reports

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/status"
)

// Columns is the length of the longest line of a text.
const Columns = 100

// Refused checks that an error of a document is InvalidArgument, with a path.
func Refused(t testing.TB, err error) {
	t.Helper()
	e, ok := errors.AsType[*status.Error](err)
	if !ok || e.Code != status.InvalidArgument {
		t.Fatalf("%v is not InvalidArgument", err)
	}
	if _, ok := e.Attr("path").(string); !ok {
		t.Fatalf("%v has no path", err)
	}
}

// Check checks the forms of a report.
func Check(t testing.TB, report []byte, text string) {
	t.Helper()
	if !json.Valid(report) {
		t.Fatalf("the report is not JSON: %s", report)
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > Columns {
			t.Fatalf("the text has a line of %d columns: %s", n, line)
		}
	}
}
