package source

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// CheckFill returns an error if a field is known to have nulls but no value replaces
// them. If nulls are not known, a gather finds the first one.
func (f Field) CheckFill(fill any) error {
	if !f.HasNulls || fill != nil {
		return nil
	}
	return f.unfilled("field %q holds nulls, and arrays cannot", f.Name)
}

// NullAt returns the error of a gather that finds a null, and has no value for it.
func (f Field) NullAt(record int64) error {
	return f.unfilled("field %q: record %d holds a null, and arrays cannot", f.Name, record).With("record", record)
}

func (f Field) unfilled(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "source", format, args...).
		WithHint("give the field a fill value (Go: Fill, C: fill; Python: fill={%q: -1}), or leave out the records that have nulls (Go: view.FilterFunc; Python: ds.filter)", f.Name).
		With("field", f.Name)
}

// Some returns the schema of a dataset with some of the records: whether a null is among
// them is not known.
func (s Schema) Some() Schema {
	s.Fields = slices.Clone(s.Fields)
	for i := range s.Fields {
		s.Fields[i].HasNulls = false
	}
	return s
}
