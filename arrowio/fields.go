package arrowio

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// setFields adds a field to the table for each column that arrays can hold, and
// lists the other columns as skipped. It leaves out columns with the name of a partition key.
func (a *assembly) setFields() error {
	schema := &a.union.Schema
	fields, reasons, err := a.describe()
	if err != nil {
		return err
	}
	for i, field := range fields {
		f := &schema.Fields[i]
		if a.files.List[0].Partition.Has(f.Name) {
			continue
		}
		if reasons[i] != "" {
			a.table.Schema.Skipped = append(a.table.Schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reasons[i]})
			continue
		}
		a.files.Fields = append(a.files.Fields, units.Field{Field: field, Column: i})
		a.table.Add(field, a.files.Nulls[i])
	}
	return nil
}

// describe returns the field of every column. If the rows of a column cannot be
// rows of an array, its reason is not empty.
func (a *assembly) describe() (fields []*arrowtype.Field, reasons []string, err error) {
	fields, reasons, err = table.Fields(&a.union.Schema, table.Shapes{Shapes: a.o.Shapes, Types: a.o.Types})
	if err != nil {
		return nil, nil, err
	}
	if err := union.AgreeClasses(a.united, fields); err != nil {
		return nil, nil, err
	}
	lists := map[int]*arrowtype.Field{} // columns that may have ragged rows
	uneven := make([]string, len(fields))
	for i, f := range fields {
		if reasons[i] == "" && !a.located(i) {
			reasons[i] = "a column before it has a type that is not known"
		}
		if reasons[i] != "" || f.Ragged > 0 || f.LastOffsets() < 0 {
			continue
		}
		if lists[i] = f; f.Open() && a.sampled() {
			uneven[i] = "its lists have no declared length; give a shape"
		} else if f.Open() {
			uneven[i], err = f.Measure(func(shape []int) (string, error) {
				return a.lists.FirstShape(a.ctx, units.Field{Field: f, Column: i}, shape)
			})
			if err != nil {
				return nil, nil, err
			}
		}
		a.union.Like(f, i)
	}
	if err := a.uneven(lists, uneven); err != nil {
		return nil, nil, err
	}
	if err := misfit(lists, uneven, a.o.Shapes); err != nil {
		return nil, nil, err
	}
	for i, f := range lists {
		if uneven[i] == "" && a.o.Shapes[f.Name] == nil {
			if uneven[i], err = a.lists.Uneven(a.ctx, units.Field{Field: f, Column: i}); err != nil {
				return nil, nil, err
			}
		}
		if uneven[i] != "" {
			f.MakeRagged()
			a.union.Like(f, i)
		}
	}
	return fields, reasons, nil
}

// sampled reports whether the columns of some file follow from its first rows.
func (a *assembly) sampled() bool {
	return slices.ContainsFunc(a.files.List, func(f *units.File) bool { return f.Sampled })
}

// located reports whether the metadata of every file show where the buffers of a column are.
func (a *assembly) located(column int) bool {
	return !slices.ContainsFunc(a.files.List, func(f *units.File) bool {
		number := f.Member.Numbers[column]
		return number >= 0 && !f.Located[number]
	})
}

// misfit returns the error for a column of lists that does not fit its given shape.
func misfit(columns map[int]*arrowtype.Field, reasons []string, shapes map[string][]int) error {
	for _, i := range slices.Sorted(maps.Keys(columns)) {
		f := columns[i]
		if given := shapes[f.Name]; given != nil && reasons[i] != "" {
			reason, _, _ := strings.Cut(reasons[i], "; ")
			return status.Errorf(status.InvalidArgument, "arrowio", "field %q cannot have rows of shape %v: %s", f.Name, given, reason).
				WithHint("leave its shape out, correct it, or pad or cut the lists to one length").With("field", f.Name)
		}
	}
	return nil
}

// uneven adds a reason for every column with lists that cannot be rows of one shape. It
// reads the headers of the record batches, a few offsets, and all offsets of the first
// records.
func (a *assembly) uneven(columns map[int]*arrowtype.Field, reasons []string) error {
	if len(columns) == 0 {
		return nil
	}
	found := make([]map[int]string, len(a.files.List))
	err := a.files.Reads.Each(len(a.files.List), func(k int) error {
		f := a.files.List[k]
		found[k] = map[int]string{}
		return f.Scan(a.ctx, len(f.Units), func(_ int, u format.Unit) error {
			for column, field := range columns {
				if found[k][column] != "" || reasons[column] != "" {
					continue
				}
				number, as := f.Column(units.Field{Field: field, Column: column})
				if number < 0 {
					continue
				}
				reason, err := u.Uneven(number, as.Field)
				if err != nil {
					return err
				}
				found[k][column] = reason
			}
			return nil
		})
	})
	for column := range columns {
		for k := range found {
			reasons[column] = cmp.Or(reasons[column], found[k][column])
		}
	}
	return err
}
