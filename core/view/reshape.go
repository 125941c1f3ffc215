package view

import (
	"cmp"
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Shape describes the rows of a reshaped field.
type Shape struct {
	Dims []int
	Type dtype.Type // type of the elements that bytes hold, little-endian; Invalid keeps the field's type
}

// Reshape returns a view in which the rows of a field have another shape. The rows are arrays,
// lists or binary values with as many elements as the shape, which keep their C order. Bytes may
// hold elements of any type but bool. A null row stays null.
//
// A list or a binary value of another size is an error of the gather that needs it.
// [source.Check] reads no sizes of binary values or ragged lists, because a file may store them
// among the values.
func Reshape(src source.Source, field string, s Shape) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	schema := src.Schema()
	number, err := schema.Find(field)
	if err != nil {
		return nil, err
	}
	f := schema.Fields[number]
	to := f
	to.Type, to.Shape, to.Ragged, to.Lists = cmp.Or(s.Type, f.Type), slices.Clone(s.Dims), 0, false
	if f.IsBytes() || to.Type != f.Type {
		to.Logical = ""
	}
	if err := reshapable(f, to); err != nil {
		return nil, err
	}
	v := &reshape{base: newBase("reshape", src), number: number}
	v.identify, v.records, v.origins = v.hash, src.Len(), allOf(src)
	v.origins[number].compute = v.compute
	v.schema = source.Schema{Fields: slices.Clone(schema.Fields), Skipped: schema.Skipped}
	v.schema.Fields[number] = to
	return v, nil
}

// reshapable returns an error if rows of a field cannot become rows of another.
func reshapable(from, to source.Field) error {
	fail := func(code status.Code, format string, args ...any) *status.Error {
		return status.Errorf(code, "view", format, args...).With("field", from.Name)
	}
	elements := 1
	for _, n := range to.Shape {
		if n < 1 || n > maxRowBytes/to.Type.Size()/elements {
			return fail(status.InvalidArgument, "field %q cannot have rows of shape %v", from.Name, to.Shape).
				WithHint("give positive lengths of at most 2 GiB in all")
		}
		elements *= n
	}
	switch {
	case from.IsText():
		return fail(status.InvalidArgument, "field %q holds text, whose rows have no shape", from.Name).
			WithHint("give its bytes one length: ds.pad(%q, length=…) in Python, view.Pad in Go, mf_dataset_pad in C", from.Name)
	case from.Ragged > 1:
		return fail(status.Unsupported, "field %q has rows of type %s, and only rows of one list can have a shape", from.Name, from.TypeString()).
			WithHint("store all values of a record as one list")
	case len(to.Shape) > maxDims:
		return fail(status.InvalidArgument, "field %q cannot have rows of %d dimensions", from.Name, len(to.Shape)).WithHint("give at most %d", maxDims)
	case to.Type != from.Type && (from.Type != dtype.Uint8 || to.Type == dtype.Bool):
		return fail(status.InvalidArgument, "field %q holds %v, which cannot be read as %v", from.Name, from.Type, to.Type).
			WithHint("only bytes can be read as another type, and not as bool; convert on the device")
	case from.Ragged == 0 && from.RowBytes() != to.RowBytes():
		return fail(status.InvalidArgument, "field %q has rows of %d bytes, but rows of shape %v and type %v have %d", from.Name, from.RowBytes(), to.Shape, to.Type, to.RowBytes()).
			WithHint("give the shape that the rows have")
	}
	return nil
}

// maxDims bounds the dimensions of a row.
const maxDims = 32

// reshape is a view with another shape for the rows of a field.
type reshape struct {
	base
	number int // number of the field
}

func (v *reshape) hash(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	h, f := hashOf("reshape", below...), v.schema.Fields[v.number]
	err := hashNumbers(ctx, h, int64(v.number), int64(f.Type), int64(len(f.Shape)))
	for _, n := range f.Shape {
		if err == nil {
			err = hashNumbers(ctx, h, int64(n))
		}
	}
	return fingerprint(h), err
}

// compute passes on a row, which must have the size of the shape.
func (v *reshape) compute(_ context.Context, _ source.Draw, _ *memory, s *source.Span, rows []source.Span, _ int64) error {
	if takeRow(s, &rows[0]); s.Null() {
		return nil
	}
	f := &v.schema.Fields[v.number]
	if err := f.CheckRow(s); err != nil {
		return err
	}
	if s.Nulls != nil && len(s.Nulls)*f.Type.Size() != len(s.Row) {
		return status.Errorf(status.InvalidArgument, "view", "field %q: record %d holds a null among its bytes, so they cannot be elements of %v", f.Name, s.Record, f.Type).
			WithHint("leave out this record (Go: view.FilterFunc; Python: ds.filter)").With("field", f.Name).With("record", s.Record)
	}
	return nil
}
