package document_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/memory/document"
)

// TestSchemaNames compares the names in the schema with the names that the parser accepts.
func TestSchemaNames(t *testing.T) {
	var schema struct {
		Properties struct {
			Optimizer struct{ AnyOf []struct{ Enum []string } }
		}
		Defs struct {
			Dtype struct{ Enum []string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(document.Schema()), &schema); err != nil {
		t.Fatal(err)
	}
	compare(t, schema.Defs.Dtype.Enum, memory.Elements())
	compare(t, schema.Properties.Optimizer.AnyOf[0].Enum, memory.Optimizers())
}

func compare[T interface{ String() string }](t *testing.T, got []string, list []T) {
	t.Helper()
	want := []string{}
	for _, x := range list {
		want = append(want, x.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the schema has %v, the parser %v", got, want)
	}
}
