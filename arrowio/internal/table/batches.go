package table

import (
	"errors"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Batches are record batches in memory.
type Batches struct {
	Origin string // the producer of the batches, for errors, such as "stream"
	Schema *arrowmeta.Schema
	Shapes         // what the caller says about the rows of lists and binary values
	Rows   []int64 // number of rows of each batch
	Skip   []int64 // rows at the start of each batch to ignore; nil for none

	// Array returns a column of a batch.
	Array func(batch, column int) *Array
}

// Table makes a table of the batches. Schema.Skipped lists the columns that cannot
// be arrays, with the reason. The error is DataLoss if the buffers do not fit the
// schema. After Close, release is called as soon as no gather runs.
func (r *Batches) Table(release func() error) (*Table, error) {
	fields, reasons, err := Fields(r.Schema, r.Shapes)
	if err != nil {
		return nil, err
	}
	t := &Table{Index: index.New(r.Rows), Calls: source.NewCalls("arrowio", "dataset", release)}
	for i, field := range fields {
		column, reason := (*buffers.Column)(nil), reasons[i]
		if reason == "" {
			if column, reason, err = r.column(i, field); err != nil {
				return nil, err
			}
		}
		if reason != "" {
			f := &r.Schema.Fields[i]
			t.Schema.Skipped = append(t.Schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reason})
			continue
		}
		t.Columns = append(t.Columns, column)
		t.Add(field, column.Nulls())
	}
	return t, nil
}

func (r *Batches) damaged(batch int, field *arrowtype.Field, err error) error {
	return status.Errorf(status.DataLoss, "arrowio", "record batch %d of the %s: column %q: %v", batch, r.Origin, field.Name, err).
		WithHint("the producer of the %s is at fault", r.Origin)
}

// column finds the buffers of one column and checks the lengths of its lists. If
// the column cannot be an array, it returns the reason.
func (r *Batches) column(number int, field *arrowtype.Field) (column *buffers.Column, reason string, err error) {
	b := builder{field: field, column: &buffers.Column{Planes: make([]buffers.Plane, len(field.Levels))}}
	for i, rows := range r.Rows {
		skip := int64(0)
		if r.Skip != nil {
			skip = r.Skip[i]
		}
		if err := b.batch(r.Array(i, number), skip, rows); err != nil {
			return nil, "", r.damaged(i, field, err)
		}
		if b.reason != "" {
			return nil, b.reason, nil
		}
	}
	b.finish(len(r.Rows))
	if reason := r.incomplete(field, b.column); reason != "" {
		return nil, reason, nil
	}
	if field.Ragged > 0 || field.LastOffsets() < 0 {
		return b.column, "", nil
	}
	if field.Open() {
		reason, err = field.Measure(func(shape []int) (string, error) { return r.firstShape(field, b.column, shape), nil })
	}
	if reason == "" && err == nil {
		reason, err = r.checkLists(field, b.column)
	}
	if reason != "" {
		field.MakeRagged()
	}
	return b.column, "", err
}

// incomplete returns the reason why a column of structs has no rows: a struct is not null, but
// its member with the rows is.
func (r *Batches) incomplete(field *arrowtype.Field, column *buffers.Column) string {
	if field.Structs() == 0 || column.Planes[1].Valid == nil {
		return ""
	}
	first := int64(0)
	outer, inner := &column.Planes[0], &column.Planes[1]
	for i, rows := range r.Rows {
		batch := int32(i)
		for row := int64(0); row < rows && inner.ValidOf(batch) >= 0; row++ {
			at := row + outer.ShiftOf(batch)
			if bitAt(outer.ValidOf(batch), at) && !bitAt(inner.ValidOf(batch), at+inner.ShiftOf(batch)) {
				return fmt.Sprintf("record %d %s; %s", first+row, noBytes, embed)
			}
		}
		first += rows
	}
	return ""
}

// bitAt returns a bit of the bitmap at an address. Without a bitmap all bits are 1.
func bitAt(bitmap, i int64) bool {
	return bitmap < 0 || bytesAt(uintptr(bitmap+i>>3), 1)[0]>>(i&7)&1 == 1
}

// lists returns a reader of a column's list offsets in one record batch.
func (r *Batches) lists(field *arrowtype.Field, column *buffers.Column, batch int) *Lists {
	l := &Lists{Field: field, Column: column, Batch: int32(batch)}
	l.Read = l.inMemory
	return l
}

// checkLists checks that all lists have the lengths in the field's shape. If one
// does not, it returns an error for a shape from the caller, and a reason to skip
// the column for any other shape.
func (r *Batches) checkLists(field *arrowtype.Field, column *buffers.Column) (reason string, err error) {
	first := int64(0)
	for i, rows := range r.Rows {
		err := r.lists(field, column, i).Check(0, rows, first)
		switch wrong, ok := errors.AsType[*Uneven](err); {
		case err == nil:
		case !ok:
			return "", r.damaged(i, field, err)
		case r.Shapes.Shapes[field.Name] != nil:
			return "", wrong.Status()
		default:
			return wrong.Reason(), nil
		}
		first += rows
	}
	return "", nil
}

// firstRecords is the number of records that firstShape searches for one without
// null or empty lists.
const firstRecords = 64

// firstShape sets the unknown lengths of a shape to the lengths in the first record
// without null or empty lists. If it finds none, it returns the reason.
func (r *Batches) firstShape(field *arrowtype.Field, column *buffers.Column, shape []int) (reason string) {
	tries := int64(firstRecords)
	for i, rows := range r.Rows {
		for row := range min(rows, tries) {
			found := slices.Clone(shape)
			if ok, _, err := r.lists(field, column, i).FirstShape(row, found); ok && err == nil {
				copy(shape, found)
				return ""
			}
		}
		tries -= min(rows, tries)
	}
	return "its rows have no known shape: its first records are null or empty; give its row shape in shapes"
}
