package arrowio

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
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
		if a.files[0].Partition.Has(f.Name) {
			continue
		}
		if reasons[i] != "" {
			a.table.Schema.Skipped = append(a.table.Schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reasons[i]})
			continue
		}
		a.columns = append(a.columns, i)
		a.table.Add(field, a.nulls[i])
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
	lists := map[int]*arrowtype.Field{} // columns whose rows may be ragged
	uneven := make([]string, len(fields))
	for i, f := range fields {
		if reasons[i] == "" && !a.located(i) {
			reasons[i] = "a column before it has a type that is not known"
		}
		if reasons[i] != "" || f.Ragged > 0 || f.LastOffsets() < 0 {
			continue
		}
		if lists[i] = f; f.Open() {
			uneven[i], err = f.Measure(func(shape []int) (string, error) { return a.firstShape(f, i, shape) })
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
			if uneven[i], err = a.unevenStart(f, i); err != nil {
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

// located reports whether the metadata of every file show where the buffers of a column are.
func (a *assembly) located(column int) bool {
	return !slices.ContainsFunc(a.files, func(f *file) bool {
		number := f.member.Numbers[column]
		return number >= 0 && !f.Located[number]
	})
}

// startRecords is how many records' lists are checked when a dataset is opened. Lists of
// different lengths may have as many values as lists of one length, but hardly in many
// record batches.
const startRecords = 64 << 10

// unevenStart returns the reason why the lists of the first records differ in length, or
// "". It leaves damaged offsets to the gather that needs them.
func (a *assembly) unevenStart(f *arrowtype.Field, number int) (reason string, err error) {
	records := min(a.Len(), startRecords)
	if records == 0 {
		return "", nil
	}
	last, _ := a.table.Index.Locate(records - 1)
	column, err := a.find(f, number, int(last)+1)
	if err != nil {
		return "", err
	}
	r := listReader{ctx: a.ctx, d: a.Dataset, of: f, number: number, all: column}
	for record := int64(0); record < records; {
		batch, row := a.table.Index.Locate(record)
		rows := min(a.table.Index.Rows(int(batch))-row, records-record)
		lists, err := r.open(batch)
		if err == nil && lists != nil {
			err = lists.Check(row, row+rows, record)
		}
		var uneven *table.Uneven
		switch {
		case errors.As(err, &uneven):
			return uneven.Reason(), nil
		case a.ctx.Err() != nil:
			return "", blob.ReadError(a.files[0].Path, a.ctx.Err())
		case err != nil:
			return "", nil
		}
		record += rows
	}
	return "", nil
}

// misfit returns the error for a column of lists whose given shape does not fit.
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

// uneven adds a reason for every column whose lists cannot be rows of one shape. It
// reads the headers of the record batches, a few offsets, and all offsets of the first
// records.
func (a *assembly) uneven(columns map[int]*arrowtype.Field, reasons []string) error {
	if len(columns) == 0 {
		return nil
	}
	found := make([]map[int]string, len(a.files))
	err := parallel(len(a.files), func(k int) error {
		f := a.files[k]
		found[k] = map[int]string{}
		return f.scan(a.ctx, len(f.Units), func(_ int, u format.Unit) error {
			for column, field := range columns {
				if found[k][column] != "" || reasons[column] != "" {
					continue
				}
				number, field := f.columnOf(column, field)
				if number < 0 {
					continue
				}
				reason, err := u.Uneven(number, field)
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

// firstRecords bounds the search for a record that is not null. All rows get the
// shape of the first such record.
const firstRecords = 64

// firstShape replaces each unknown length in shape by that of the first record
// that is not null. It returns the reason if it finds none.
func (a *assembly) firstShape(f *arrowtype.Field, number int, shape []int) (reason string, err error) {
	if a.Len() == 0 {
		return "its lists have no declared length, and there is no record to take it from; give its shape", nil
	}
	records := min(a.Len(), firstRecords)
	last, _ := a.table.Index.Locate(records - 1)
	column, err := a.find(f, number, int(last)+1)
	if err != nil {
		return "", err
	}
	r := listReader{ctx: a.ctx, d: a.Dataset, of: f, number: number, all: column}
	for record := range records {
		batch, row := a.table.Index.Locate(record)
		lists, err := r.open(batch)
		if err != nil {
			return "", err
		}
		if lists == nil {
			continue
		}
		found, empty, err := lists.FirstShape(row, shape)
		switch {
		case err != nil:
			return "", r.damaged(err)
		case empty >= 0:
			return fmt.Sprintf("record %d, which its shape is taken from, has an empty list in dimension %d; give its shape", record, empty), nil
		case found:
			return "", nil
		}
	}
	return "its first records are null; give its shape", nil
}
