package layout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/tests/documents"
)

// TestProblems lists the problems of the documents in testdata/problems, with
// their facts, and the error that Err returns.
func TestProblems(t *testing.T) {
	seen := map[problem.Code]bool{}
	datadriven.Walk(t, "testdata/problems", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l := documents.Layout(t, d.Input)
			var out strings.Builder
			for _, p := range l.Problems() {
				seen[p.Code] = true
				fmt.Fprintln(&out, p)
				for _, f := range p.Facts {
					fmt.Fprintf(&out, "  %s=%d\n", f.Name, f.Value)
				}
			}
			if err := l.Err(); err != nil {
				fmt.Fprintln(&out, err)
			}
			if out.Len() == 0 {
				return "none\n"
			}
			return out.String()
		})
	})
	for _, code := range layout.Codes() {
		if !seen[code] {
			t.Errorf("no document has the problem %s", code)
		}
	}
}
