package audit

import (
	"fmt"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Unchecked is a property of a column that an audit does not check.
type Unchecked struct {
	Column string // with the names of its parents, joined by dots
	Type   string
	What   string
}

// Uncheckable lists what [File.Audit] does not check of columns and their children.
func Uncheckable(columns []arrowmeta.Column) []Unchecked { return unchecked(columns, "") }

func unchecked(columns []arrowmeta.Column, parents string) (list []Unchecked) {
	for i := range columns {
		c := &columns[i]
		path := parents + c.Field.Name
		if what := uncheckedOf(c); what != "" {
			list = append(list, Unchecked{path, c.Field.TypeString(), what})
		}
		if c.Located {
			list = append(list, unchecked(c.Children, path+".")...)
		}
	}
	return list
}

// uncheckedOf returns what an audit does not check of a column, not counting its
// children; "" if it checks everything.
func uncheckedOf(c *arrowmeta.Column) string {
	switch t := &c.Field.Type; {
	case !c.Located:
		return "anything: its type or the type of an earlier column is unknown"
	case t.Kind == arrowmeta.Decimal:
		return fmt.Sprintf("whether values have at most %d digits", t.Precision)
	case t.Kind == arrowmeta.Time:
		return "whether times lie within a day"
	case t.Kind == arrowmeta.Date && t.BitWidth == 64:
		return "whether values are whole days"
	case t.Kind == arrowmeta.Map && t.KeysSorted:
		return "whether keys differ and are sorted"
	case t.Kind == arrowmeta.Map:
		return "whether keys differ"
	}
	return ""
}
