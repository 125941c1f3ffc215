package arrowio

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Values is a field for [FromSlices], made by [Slice].
type Values struct {
	name  string
	typ   dtype.Type
	data  unsafe.Pointer
	len   int // elements
	shape []int
}

// Slice makes a field of a Go slice that holds the rows one after the other. shape is
// the shape of one row. Without a shape, a row is one element.
//
//	ds, err := arrowio.FromSlices(arrowio.Slice("image", pixels, 28, 28), arrowio.Slice("label", labels))
func Slice[T dtype.Element](name string, values []T, shape ...int) Values {
	return Values{name, dtype.Of[T](), unsafe.Pointer(unsafe.SliceData(values)), len(values), shape}
}

// As reinterprets the elements as another type of the same size. For example, a
// slice of uint16 can hold dtype.Float16 or dtype.BFloat16, because Go has no
// types for them.
func (v Values) As(typ dtype.Type) Values {
	if v.typ.Size() != typ.Size() {
		v.typ = dtype.Invalid
		return v
	}
	v.typ = typ
	return v
}

// FromSlices makes a dataset of Go slices without copying them. The caller must
// not change the slices while the dataset is open. All fields must have the same
// number of rows.
func FromSlices(fields ...Values) (source.Source, error) {
	if len(fields) == 0 {
		return nil, status.New(status.InvalidArgument, "arrowio", "a dataset needs at least one field")
	}
	columns := make([]*buffers.Column, len(fields))
	t := &table.Table{Columns: columns}
	t.Calls = source.NewCalls("arrowio", "dataset", func() error { clear(columns); return nil })
	rows := make([]int64, len(fields))
	for i, v := range fields {
		f, err := v.field()
		if err != nil {
			return nil, err
		}
		rows[i] = int64(v.len / f.RowElements())
		if rows[i] != rows[0] {
			return nil, v.refuse("has %d rows, but %q has %d", rows[i], fields[0].name, rows[0])
		}
		if _, _, twice := t.Schema.Field(v.name); twice {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "two fields are called %q", v.name).With("field", v.name)
		}
		columns[i] = &buffers.Column{Planes: make([]buffers.Plane, len(f.Levels)), Memory: []unsafe.Pointer{v.data}}
		columns[i].Planes[len(f.Levels)-1].Data = []int64{int64(uintptr(v.data))}
		t.Add(f, buffers.Nulls{})
	}
	t.Index = index.New(rows[:1])
	return table.NewMemory(t), nil
}

// field describes the slice's rows.
func (v Values) field() (*arrowtype.Field, error) {
	if !v.typ.Valid() {
		return nil, v.refuse("is read as a type of another size")
	}
	if !arrowtype.Possible(v.typ, v.shape) {
		return nil, v.refuse("cannot have rows of shape %v", v.shape)
	}
	f := arrowtype.Plain(v.name, v.typ, v.shape)
	if n := f.RowElements(); v.len%n != 0 {
		return nil, v.refuse("has %d elements, which is not a multiple of the %d of a row", v.len, n)
	}
	return f, nil
}

// refuse returns the error for a field that cannot be part of a dataset.
func (v Values) refuse(format string, args ...any) error {
	return status.Errorf(status.InvalidArgument, "arrowio", "field %q "+format, append([]any{v.name}, args...)...).With("field", v.name)
}
