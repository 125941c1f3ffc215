// Package block turns the parts of a field that a loader asks for, each a
// [source.Part], into programs of package gather. A program describes which elements
// of a row are copied to a block, how they are converted, and which value replaces
// nulls. All sources use this package, so that they accept and refuse the same parts
// with the same errors.
package block

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// Program is the program of one part. It is immutable.
type Program struct {
	*gather.Program

	field source.Field
	fill  []byte // one element that replaces nulls; nil if a null is an error
	boxes [][][2]int
}

// compile makes the program of a part of field f.
//
// The error is InvalidArgument for a ragged field, boxes outside the row, and a fill value that
// the delivered type cannot hold.
// It is Unsupported for a delivered type that is neither the field's own nor the one
// that JAX narrows it to, such as int32 for int64.
func compile(f source.Field, form Form, p source.Part) (*Program, error) {
	if f.Ragged > 0 {
		return nil, fail("field %q cannot be an array: %s", f.Name, f.Why()).With("field", f.Name)
	}
	to := p.To
	if to == dtype.Invalid {
		to = f.Type
	}
	conv, err := conversion(f, form.Bits, to)
	if err != nil {
		return nil, err
	}
	if err := checkBoxes(f, p.Boxes); err != nil {
		return nil, err
	}
	out := &Program{field: f, boxes: p.Boxes}
	if form.Strides != nil {
		out.Program = gather.CompileStrided(form.Strides, f.Type.Size(), p.Boxes, conv)
	} else {
		out.Program = gather.Compile(f.Shape, f.Type.Size(), p.Boxes, conv)
	}
	if !f.Nullable || p.Fill == nil {
		return out, nil
	}
	out.fill, err = encode(f.Name, to, p.Fill)
	return out, err
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "source", format, args...)
}

func conversion(f source.Field, bits bool, to dtype.Type) (gather.Conversion, error) {
	if to == f.Type && bits {
		return gather.Bits, nil
	}
	if c, ok := gather.Conversions(f.Type, to); ok {
		return c, nil
	}
	e := status.Errorf(status.Unsupported, "source", "field %q is stored as %v and cannot be delivered as %v", f.Name, f.Type, to)
	if narrow := f.Type.Narrow(); narrow != f.Type {
		return 0, e.WithHint("ask for %v or %v", f.Type, narrow)
	}
	return 0, e.WithHint("ask for %v, and convert it on the device", f.Type)
}

// checkBoxes makes sure that every box lies within the row, and that boxes differ
// in dimension 0 only.
func checkBoxes(f source.Field, boxes [][][2]int) error {
	if len(boxes) == 0 {
		return fail("a part of field %q takes no box of its rows", f.Name)
	}
	for _, box := range boxes {
		if len(box) != len(f.Shape) {
			return fail("a part of field %q takes a box of %d dimensions, but its rows have %d", f.Name, len(box), len(f.Shape))
		}
		for d, r := range box {
			if r[0] < 0 || r[0] > r[1] || r[1] > f.Shape[d] {
				return fail("a part of field %q takes [%d, %d) of dimension %d, whose size is %d", f.Name, r[0], r[1], d, f.Shape[d])
			}
		}
		if len(box) > 1 && !slices.Equal(box[1:], boxes[0][1:]) {
			return fail("the boxes of a part of field %q differ in other dimensions than the first", f.Name)
		}
	}
	if len(f.Shape) == 0 && len(boxes) > 1 {
		return fail("a part of field %q takes %d boxes of a scalar", f.Name, len(boxes))
	}
	return nil
}

// fillNulls writes the fill value over the null elements of one row of the block.
// Dst is that row, of p.Bytes() bytes. Nulls has an entry for each element of the
// stored row in C order; nil stands for a row of nulls.
func (p *Program) fillNulls(dst []byte, nulls []bool) {
	for _, box := range p.boxes {
		dst = p.fillBox(dst, nulls, box, 0, 0)
	}
}

// fillBox fills the nulls of one box and returns the rest of dst. It handles dimension
// d of the box, and calls itself for the next one. Element is the index in C order
// over the dimensions before d.
func (p *Program) fillBox(dst []byte, nulls []bool, box [][2]int, d, element int) []byte {
	if d == len(box) {
		if nulls == nil || nulls[element] {
			copy(dst, p.fill)
		}
		return dst[len(p.fill):]
	}
	for i := box[d][0]; i < box[d][1]; i++ {
		dst = p.fillBox(dst, nulls, box, d+1, element*p.field.Shape[d]+i)
	}
	return dst
}
