package arrowtype

import (
	"fmt"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// refusedKind refuses all other types with a reason.
type refusedKind struct{}

func (refusedKind) matches(*arrowmeta.Field) bool { return true }

func (refusedKind) describe(_ *description, f *arrowmeta.Field) string { return refusal(&f.Type) }

func refusal(t *arrowmeta.Type) string {
	switch t.Kind {
	case arrowmeta.Struct:
		return "a struct has no single type; store its children as columns of their own"
	case arrowmeta.Decimal:
		return "arrays have no decimal type; cast it to float64 or to an integer"
	case arrowmeta.Null:
		return "it holds nothing but nulls; leave the column out"
	case arrowmeta.ListView, arrowmeta.LargeListView:
		return "list views are not read; cast it to a list or a fixed-size list"
	case arrowmeta.RunEndEncoded:
		return "run-end encoded values are not read; store plain values"
	case arrowmeta.Interval:
		return "intervals of several parts have no single type; store integers"
	case arrowmeta.Map, arrowmeta.Union:
		return fmt.Sprintf("a %v has no single type; store plain columns", t.Kind)
	}
	if !t.Kind.Known() {
		return "its type is not known here; cast it to a type of numbers, or leave it out"
	}
	return fmt.Sprintf("arrays have no type %v; cast it to int64 or float64, or leave it out", t)
}
