package document_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/meshfeed/meshfeed/core/diagnosis/document"
)

// TestSchemaNames compares the names in the schema of reports with the constants.
func TestSchemaNames(t *testing.T) {
	var schema struct {
		Properties struct{ Action struct{ Enum []string } }
		Defs       struct{ Bound struct{ Enum []string } } `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(document.ReportSchema()), &schema); err != nil {
		t.Fatal(err)
	}
	for kind, got := range map[string][]string{"Action": schema.Properties.Action.Enum, "Bound": schema.Defs.Bound.Enum} {
		if want := constants(t, kind); !slices.Equal(got, want) || len(want) < 8 {
			t.Errorf("the schema has %v, the package %v", got, want)
		}
	}
}

// constants returns the values of the constants of a type, in their order.
func constants(t *testing.T, kind string) (values []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "../diagnosis.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == kind {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
		}
		return true
	})
	return values
}
