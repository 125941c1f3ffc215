// Package block turns what a loader asks of a field, a [source.Part], into what
// the gathering kernels do: which elements of a row, in which conversion, and
// what stands in for nulls. All Arrow sources share it, so that they accept
// and refuse the same things in the same words.
package block

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// Program is one part of a field, ready to be gathered. It is immutable.
type Program struct {
	*gather.Program

	Field source.Field
	To    dtype.Type // of the elements delivered
	Fill  []byte     // one element that replaces nulls; nil where there are none

	boxes [][][2]int
}

// Compile makes the program of a part of field f. Bits says that a boolean is
// one bit in memory and not a byte.
//
// It is InvalidArgument for boxes outside the row, a fill value that the type
// delivered cannot hold, and a field that may hold nulls without a fill value;
// Unsupported for a conversion other than to the field's own type or to the
// one JAX narrows it to.
func Compile(f source.Field, bits bool, p source.Part) (*Program, error) {
	return compile(f, bits, p, func(conv gather.Conversion) *gather.Program {
		return gather.Compile(f.Shape, f.Type.Size(), p.Boxes, conv)
	})
}

// CompileStrided is [Compile] for rows that are not in C order: strides holds
// the bytes between neighbours in each dimension of the row.
func CompileStrided(f source.Field, strides []int, p source.Part) (*Program, error) {
	return compile(f, false, p, func(conv gather.Conversion) *gather.Program {
		return gather.CompileStrided(strides, f.Type.Size(), p.Boxes, conv)
	})
}

func compile(f source.Field, bits bool, p source.Part, program func(gather.Conversion) *gather.Program) (*Program, error) {
	to := p.To
	if to == dtype.Invalid {
		to = f.Type
	}
	conv, err := conversion(f, bits, to)
	if err != nil {
		return nil, err
	}
	if err := checkBoxes(f, p.Boxes); err != nil {
		return nil, err
	}
	out := &Program{Field: f, To: to, boxes: p.Boxes}
	out.Program = program(conv)
	if !f.Nullable {
		return out, nil
	}
	if p.Fill == nil {
		return nil, fail("field %q may hold nulls, and arrays cannot", f.Name).
			WithHint("give the field a fill value, or drop the records that have nulls")
	}
	out.Fill, err = encode(f.Name, to, p.Fill)
	return out, err
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "arrowio", format, args...)
}

func conversion(f source.Field, bits bool, to dtype.Type) (gather.Conversion, error) {
	switch {
	case to == f.Type && bits:
		return gather.Bits, nil
	case to == f.Type:
		return gather.Copy, nil
	case to == f.Type.Narrow():
		return narrowing[to], nil
	}
	e := status.Errorf(status.Unsupported, "arrowio", "field %q is stored as %v and cannot be delivered as %v", f.Name, f.Type, to)
	if narrow := f.Type.Narrow(); narrow != f.Type {
		return 0, e.WithHint("ask for %v or %v", f.Type, narrow)
	}
	return 0, e.WithHint("ask for %v, and convert it on the device", f.Type)
}

var narrowing = map[dtype.Type]gather.Conversion{
	dtype.Int32:     gather.Int64ToInt32,
	dtype.Uint32:    gather.Uint64ToUint32,
	dtype.Float32:   gather.Float64ToFloat32,
	dtype.Complex64: gather.Complex128ToComplex64,
}

// checkBoxes makes sure that every box lies within the row, and that all agree
// but in dimension 0.
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

// FillNulls writes the fill value over the null elements of one row in dst,
// which has Bytes bytes. Elements of the stored row are counted in C order.
func (p *Program) FillNulls(dst []byte, isNull func(element int) bool) {
	w := walk{p: p, dst: dst, isNull: isNull}
	for _, box := range p.boxes {
		w.dimension(box, 0, 0)
	}
}

// walk visits the elements of boxes in the order in which they are gathered.
type walk struct {
	p      *Program
	dst    []byte
	isNull func(element int) bool
}

func (w *walk) dimension(box [][2]int, d, element int) {
	if d == len(box) {
		if w.isNull(element) {
			copy(w.dst, w.p.Fill)
		}
		w.dst = w.dst[len(w.p.Fill):]
		return
	}
	for i := box[d][0]; i < box[d][1]; i++ {
		w.dimension(box, d+1, element*w.p.Field.Shape[d]+i)
	}
}
