package table

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
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
	return &Table{Fields: r.described, Schema: r.out, Index: NewIndex(r.Rows), Load: Found(r.columns), Gate: NewGate(release)}, nil
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
	declared := r.Schema.RowShapes()
	for name := range r.Shapes {
		if !r.has(name) {
			return status.Errorf(status.InvalidArgument, "arrowio", "a shape is given for %q, but there is no such column", name).With("field", name)
		}
	}
	for i := range r.Schema.Fields {
		f := &r.Schema.Fields[i]
		field, column, reason, err := r.field(i, declared[i])
		if err != nil {
			return err
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

func (r *Batches) has(name string) bool {
	for i := range r.Schema.Fields {
		if r.Schema.Fields[i].Name == name {
			return true
		}
	}
	return false
}

func hasNulls(c *Column) bool {
	for i := range c.Planes {
		if c.Planes[i].Valid != nil {
			return true
		}
	}
	return false
}

// field describes one column and finds its buffers.
func (r *Batches) field(number int, declared []int) (field *Field, column *Column, reason string, err error) {
	f := &r.Schema.Fields[number]
	if twice := r.repeated(number); twice {
		return nil, nil, "another column has the same name", nil
	}
	if field, reason = Describe(f); reason != "" {
		return nil, nil, reason, nil
	}
	b := builder{field: field, column: &Column{Planes: make([]Plane, len(field.Nodes))}}
	for i, rows := range r.Rows {
		if err := b.batch(r.Array(i, number), r.skip(i), rows); err != nil {
			return nil, nil, "", r.damaged("record batch %d of the %s: column %q: %v", i, r.Origin, f.Name, err)
		}
		if b.reason != "" {
			return nil, nil, b.reason, nil
		}
	}
	b.finish(len(r.Rows))
	asked, ok := r.Shapes[f.Name]
	if ok {
		if err := field.Resolve(asked); err != nil {
			return nil, nil, "", status.Errorf(status.InvalidArgument, "arrowio", "field %q %w", f.Name, err).
				WithHint("leave its shape out, or correct it").With("field", f.Name)
		}
	} else if field.Open() {
		reason = r.measure(&b, declared)
	}
	return field, b.column, reason, nil
}

func (r *Batches) repeated(number int) bool {
	for i := range r.Schema.Fields[:number] {
		if r.Schema.Fields[i].Name == r.Schema.Fields[number].Name {
			return true
		}
	}
	return false
}

// measure finds the row shape of lists of unknown length: as the metadata
// declare it, else as the first record has it.
func (r *Batches) measure(b *builder, declared []int) string {
	shape := append([]int{}, b.field.Shape...)
	if len(declared) == len(shape) {
		for i, d := range declared {
			if shape[i] < 0 {
				shape[i] = d
			}
		}
	}
	if slices.Contains(shape, -1) {
		shape = r.firstShape(b, shape)
	}
	for _, d := range shape {
		if d < 0 {
			return "its rows have no known shape: its first records are null or empty; give its row shape in shapes"
		}
	}
	if err := b.field.Resolve(shape); err != nil {
		return fmt.Sprint("it ", err)
	}
	return ""
}

// firstShape completes a shape by the first record that has all its lists, of
// the first few.
func (r *Batches) firstShape(b *builder, shape []int) []int {
	tries := 64
	for i, rows := range r.Rows {
		for row := range min(rows, int64(tries)) {
			tries--
			if found := slices.Clone(shape); b.first(i, row, found) {
				return found
			}
		}
	}
	return shape
}
