package table

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

var (
	number = arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	ragged = arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Name: "item", Type: number}}}
)

// TestFields: a list has the given shape; without one, its length is -1 and the field
// is open. A column that cannot be a field has a reason. If several shapes have no
// column, the error always names the first by name, although maps have no order.
func TestFields(t *testing.T) {
	s := &arrowmeta.Schema{Fields: []arrowmeta.Field{{Name: "a", Type: ragged}, {Name: "b", Type: ragged}, {Name: "a", Type: number}}}
	fields, reasons, err := Fields(s, Shapes{Shapes: map[string][]int{"a": {2, 3}}})
	if err != nil || fmt.Sprint(fields[0].Shape, fields[1].Shape, fields[2] == nil) != "[2 3] [-1] true" || fields[0].Open() || !fields[1].Open() {
		t.Errorf("%+v %+v, %v", fields[0], fields[1], err)
	}
	if want := "a column before it has the same name; rename one of them"; reasons[0] != "" || reasons[1] != "" || reasons[2] != want {
		t.Errorf("reasons %q", reasons)
	}
	for range 20 {
		_, _, err = Fields(s, Shapes{Shapes: map[string][]int{"y": nil, "x": {1}, "z": {1}, "a": {2}}})
		if want := `arrowio: a shape is given for "x", but there is no such column; there are "a", "b"`; err == nil || err.Error() != want {
			t.Fatalf("got %v, want %s", err, want)
		}
	}
}
