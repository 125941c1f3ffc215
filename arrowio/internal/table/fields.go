package table

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Shapes are what a caller says about the rows of columns, by name.
type Shapes struct {
	Shapes map[string][]int
	Types  map[string]dtype.Type // type of the elements that binary values hold; Uint8 by default
}

// Fields describes the columns of a schema, with the given row shapes. If the rows
// of a column cannot be rows of an array, the column has a reason instead of a
// field. The reason names a remedy. The error is InvalidArgument if a shape has no
// column, or does not fit it.
func Fields(s *arrowmeta.Schema, given Shapes) (fields []*arrowtype.Field, reasons []string, err error) {
	fields, reasons = arrowtype.Describe(s)
	shapes := given.Shapes
	for _, name := range slices.Sorted(maps.Keys(given.Types)) {
		if shapes[name] == nil {
			return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "an element type is given for %q, but no shape", name).
				WithHint("give the shape of its rows too").With("field", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		if err := checkColumn(name, s.Fields, reasons); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range fields {
		if f == nil || shapes[f.Name] == nil {
			continue
		}
		err := error(nil)
		if typ := given.Types[f.Name]; typ != dtype.Invalid && typ != f.Type || f.Ragged > 0 && f.IsBytes() {
			err = f.SetElements(arrowtype.Elements{Type: cmp.Or(typ, dtype.Uint8), Shape: shapes[f.Name]})
		} else {
			err = f.Resolve(shapes[f.Name])
		}
		if err != nil {
			return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "field %q %w", f.Name, err).
				WithHint("leave its shape out, or correct it").With("field", f.Name)
		}
	}
	return fields, reasons, nil
}

// checkColumn returns an error if no column has the name, or if the first column with
// the name cannot be a field.
func checkColumn(name string, columns []arrowmeta.Field, reasons []string) error {
	var names []string
	for i := range columns {
		if columns[i].Name != name {
			if quoted := strconv.Quote(columns[i].Name); !slices.Contains(names, quoted) {
				names = append(names, quoted)
			}
			continue
		}
		if reasons[i] == "" {
			return nil
		}
		return status.Errorf(status.InvalidArgument, "arrowio", "a shape is given for %q, which cannot be an array: %s", name, reasons[i]).With("field", name)
	}
	more := ""
	if len(names) > 12 {
		names, more = names[:12], ", …"
	}
	return status.Errorf(status.InvalidArgument, "arrowio", "a shape is given for %q, but there is no such column", name).
		WithHint("there are %s%s", strings.Join(names, ", "), more).With("field", name)
}
