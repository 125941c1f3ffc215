package arrowtype

import (
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

var (
	number = arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 32, Signed: true}
	ragged = arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{{Name: "item", Type: number}}}
)

// TestMeasure uses the data only for a length that no metadata declare.
func TestMeasure(t *testing.T) {
	s := &arrowmeta.Schema{
		Fields:   []arrowmeta.Field{{Name: "told", Type: ragged}, {Name: "open", Type: ragged}},
		Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: `{"info":{"features":{"told":{"_type":"List","length":5,"feature":{"_type":"Value"}}}}}`}},
	}
	fields, _ := Describe(s)
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
