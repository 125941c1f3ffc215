package table

import (
	"errors"
	"slices"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Batches are record batches in memory.
type Batches struct {
	Origin string // as errors call what they come from, such as "stream"
	Schema *arrowmeta.Schema
	Shapes map[string][]int // rows of lists of variable length; else as declared, or as in the first record
	Rows   []int64          // of each batch
	Skip   []int64          // rows before the first that counts; nil for none
	Array  func(batch, column int) *Array

	out       source.Schema
	described []*Field
	columns   []*Column
}

// Table makes a table of the batches. What cannot be an array is in its
// schema, with the reason. It is DataLoss for arrays that do not fit the
// schema. Release is called when the last gather after Close is done.
func (r *Batches) Table(release func() error) (*Table, error) {
	if err := r.fields(); err != nil {
		return nil, err
	}
	return &Table{Fields: r.described, Schema: r.out, Index: NewIndex(r.Rows), Load: Found(r.columns), Gate: source.NewGate("arrowio", "dataset", release)}, nil
}

func (r *Batches) damaged(format string, args ...any) *status.Error {
	return status.Errorf(status.DataLoss, "arrowio", format, args...).
		WithHint("the producer of the %s is at fault", r.Origin)
}

func (r *Batches) skip(batch int) int64 {
	if r.Skip == nil {
		return 0
	}
	return r.Skip[batch]
}

// fields describes every column, or says why it cannot be an array.
func (r *Batches) fields() error {
	fields, reasons, err := Fields(r.Schema, r.Shapes)
	if err != nil {
		return err
	}
	for i, field := range fields {
		f := &r.Schema.Fields[i]
		column, reason := (*Column)(nil), reasons[i]
		if reason == "" {
			if column, reason, err = r.column(i, field); err != nil {
				return err
			}
		}
		if reason != "" {
			r.out.Skipped = append(r.out.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: reason})
			continue
		}
		r.described, r.columns = append(r.described, field), append(r.columns, column)
		r.out.Fields = append(r.out.Fields, field.Source(hasNulls(column)))
	}
	return nil
}

func hasNulls(c *Column) bool {
	for i := range c.Planes {
		if c.Planes[i].Valid != nil {
			return true
		}
	}
	return false
}

// column finds the buffers of one column, and the lengths of its lists.
func (r *Batches) column(number int, field *Field) (column *Column, reason string, err error) {
	b := builder{field: field, column: &Column{Planes: make([]Plane, len(field.Nodes))}}
	for i, rows := range r.Rows {
		if err := b.batch(r.Array(i, number), r.skip(i), rows); err != nil {
			return nil, "", r.damaged("record batch %d of the %s: column %q: %v", i, r.Origin, field.Name, err)
		}
		if b.reason != "" {
			return nil, b.reason, nil
		}
	}
	b.finish(len(r.Rows))
	if field.Open() {
		reason, err = field.Measure(func(shape []int) (string, error) { return r.firstShape(&b, shape), nil })
	}
	if reason == "" && err == nil && field.HasLists() {
		reason, err = r.lengths(field, b.column)
	}
	return b.column, reason, err
}

// lengths makes sure that all lists have the length of the row's shape: from
// the first record, as the reason, where nobody gave a shape.
func (r *Batches) lengths(field *Field, column *Column) (reason string, err error) {
	first := int64(0)
	for i, rows := range r.Rows {
		l := &Lists{Field: field, Column: column, Batch: int32(i)}
		l.Read = l.InMemory
		err := l.Check(0, rows, first)
		var wrong *Uneven
		switch {
		case err == nil:
		case !errors.As(err, &wrong):
			return "", r.damaged("record batch %d of the %s: column %q: %v", i, r.Origin, field.Name, err)
		case r.Shapes[field.Name] != nil:
			return "", wrong.Status()
		default:
			return wrong.Reason(), nil
		}
		first += rows
	}
	return "", nil
}

// firstShape completes a shape by the first record that has all its lists, of
// the first few, or says that there is none.
func (r *Batches) firstShape(b *builder, shape []int) (reason string) {
	tries := 64
	for i, rows := range r.Rows {
		for row := range min(rows, int64(tries)) {
			tries--
			if found := slices.Clone(shape); b.first(i, row, found) {
				copy(shape, found)
				return ""
			}
		}
	}
	return "its rows have no known shape: its first records are null or empty; give its row shape in shapes"
}
