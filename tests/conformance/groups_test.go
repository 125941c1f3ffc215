package conformance

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/collective"
)

func TestGroups(t *testing.T) {
	text, err := os.ReadFile("testdata/groups.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		JAX   string
		Cases []struct {
			Axes   []axis
			Over   []string
			Groups [][]int
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	t.Logf("table of JAX %s", table.JAX)
	several := 0 // cases over several axes
	for i, c := range table.Cases {
		axes := make([]mesh.Axis, len(c.Axes))
		for i, a := range c.Axes {
			axes[i] = mesh.Axis(a)
		}
		m, err := mesh.Uniform(axes, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Over) > 1 {
			several++
		}
		got, err := collective.Groups(m, c.Over)
		if err != nil || !reflect.DeepEqual(got, c.Groups) {
			t.Errorf("case %d, %v over %v: got %v, %v, JAX has %v", i, m, c.Over, got, err, c.Groups)
		}
	}
	if several < 40 {
		t.Errorf("only %d of %d cases are over several axes", several, len(table.Cases))
	}
}
