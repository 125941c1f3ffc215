package main

import (
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// TestInspectNamesLogicalTypes checks the last column of the table of fields: the
// Arrow type that integers represent, and that a nullable field needs a fill value.
func TestInspectNamesLogicalTypes(t *testing.T) {
	var i inspection
	i.addSchema(source.Schema{Fields: []source.Field{
		{Name: "when", Type: dtype.Int64, Logical: "timestamp[us]"},
		{Name: "day", Type: dtype.Int32, Logical: "date32[day]", Nullable: true},
	}})
	var out strings.Builder
	if err := i.printFields(&out); err != nil {
		t.Fatal(err)
	}
	const want = `FIELD  TYPE   ROW     BYTES PER ROW
when   int64  scalar  8              stands for timestamp[us]
day    int32  scalar  4              stands for date32[day]; may hold nulls: needs a fill value
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
