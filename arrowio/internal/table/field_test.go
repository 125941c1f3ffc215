package table

import (
	"errors"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

var (
	number = arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	ragged = arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Name: "item", Type: number}}}
)

// TestFields gives lists the shape that is asked for, and leaves others open. A
// column without a field has a reason; a shape without a column is an error,
// the same one whatever else is asked for.
func TestFields(t *testing.T) {
	s := &arrowmeta.Schema{Fields: []arrowmeta.Field{{Name: "a", Type: ragged}, {Name: "b", Type: ragged}, {Name: "a", Type: number}}}
	fields, reasons, err := Fields(s, map[string][]int{"a": {2, 3}})
	if err != nil || fmt.Sprint(fields[0].Shape, fields[1].Shape, fields[2] == nil) != "[2 3] [-1] true" || fields[0].Open() || !fields[1].Open() {
		t.Errorf("%+v %+v, %v", fields[0], fields[1], err)
	}
	if want := "a column before it has the same name; rename one of them"; reasons[0] != "" || reasons[1] != "" || reasons[2] != want {
		t.Errorf("reasons %q", reasons)
	}
	for range 20 {
		_, _, err = Fields(s, map[string][]int{"y": nil, "x": {1}, "z": {1}, "a": {2}})
		if want := `arrowio: a shape is given for "x", but there is no such column; there are "a", "b"`; err == nil || err.Error() != want {
			t.Fatalf("got %v, want %s", err, want)
		}
	}
}

// TestMeasure asks the data for what nothing else tells, and for that alone.
func TestMeasure(t *testing.T) {
	s := &arrowmeta.Schema{
		Fields:   []arrowmeta.Field{{Name: "told", Type: ragged}, {Name: "open", Type: ragged}},
		Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: `{"info":{"features":{"told":{"_type":"List","length":5,"feature":{"_type":"Value"}}}}}`}},
	}
	fields, _, err := Fields(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	first := func(reason string, err error) func([]int) (string, error) {
		return func(shape []int) (string, error) {
			asked++
			shape[0] = 7
			return reason, err
		}
	}
	if reason, err := fields[0].Measure(first("", nil)); reason != "" || err != nil || fields[0].Shape[0] != 5 || asked != 0 {
		t.Errorf("%v after %d questions: %q, %v", fields[0].Shape, asked, reason, err)
	}
	broken := errors.New("broken")
	if reason, err := fields[1].Measure(first("no record", nil)); reason != "no record" || err != nil || !fields[1].Open() {
		t.Errorf("%v: %q, %v", fields[1].Shape, reason, err)
	}
	if _, err := fields[1].Measure(first("", broken)); err != broken || !fields[1].Open() {
		t.Errorf("%v: %v", fields[1].Shape, err)
	}
	if reason, err := fields[1].Measure(first("", nil)); reason != "" || err != nil || fields[1].Shape[0] != 7 {
		t.Errorf("%v: %q, %v", fields[1].Shape, reason, err)
	}
}
