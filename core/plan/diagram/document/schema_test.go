package document_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/diagram/document"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
)

// TestSchemaNames compares the names in the schema with the names in the packages.
func TestSchemaNames(t *testing.T) {
	type member struct {
		Properties map[string]struct{ Enum []string }
	}
	var schema struct {
		Properties struct {
			Diagram struct {
				Properties struct{ Pipeline, Collective member }
			}
		}
	}
	if err := json.Unmarshal([]byte(document.Schema()), &schema); err != nil {
		t.Fatal(err)
	}
	diagram := schema.Properties.Diagram.Properties
	algorithms := []collective.Algorithm{collective.Ring, collective.Bidirectional, collective.Tree, collective.Direct}
	for _, c := range []struct{ got, want any }{
		{diagram.Pipeline.Properties["schedule"].Enum, pipeline.Kinds()},
		{diagram.Collective.Properties["op"].Enum, collective.Ops()},
		{diagram.Collective.Properties["algorithm"].Enum, algorithms},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("the schema has %v, the package %v", c.got, c.want)
		}
	}
}
