package problem_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// TestForms compares the forms of a problem with and without a hint.
func TestForms(t *testing.T) {
	p := problem.Problem{
		Severity: problem.Warning, Code: "replicated", Path: "/arrays/w", Message: `array "w" has 2 copies`, Hint: "name an axis",
		Facts: []problem.Fact{{Name: "bytes", Value: 8}},
	}
	bare := problem.Problem{Severity: problem.Info, Code: "loading", Message: "all is well"}
	var w jsontext.Writer
	p.Write(&w)
	for got, want := range map[string]string{
		p.String():               `warning replicated /arrays/w: array "w" has 2 copies; name an axis`,
		p.Text():                 `warning: array "w" has 2 copies; name an axis`,
		fmt.Sprint(p.Err("op")):  `op: array "w" has 2 copies; name an axis`,
		bare.Text():              `info: all is well`,
		fmt.Sprint(bare.Err("")): `all is well`,
		string(w.Text):           `{"severity":"warning","code":"replicated","path":"/arrays/w","message":"array \"w\" has 2 copies","hint":"name an axis","facts":{"bytes":8}}`,
	} {
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
