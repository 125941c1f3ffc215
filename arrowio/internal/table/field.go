package table

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Kind says what a node of a column does.
type Kind uint8

// The kinds of nodes.
const (
	Fixed  Kind = iota // a list of Size elements, without offsets
	List               // a list with offsets, whose length must be Size
	Coded              // indices of Width bytes into a dictionary
	Values             // Size bytes each; Size 0 stands for one bit
)

// Node is one level of a column, from the column itself down to its values.
type Node struct {
	Kind   Kind
	Size   int  // elements of a list, -1 while unknown; bytes of a value
	Width  int  // bytes of an offset or an index
	Signed bool // an index may be negative, which is out of range
}

// Field says how the rows of an Arrow field are stored and what they are as
// rows of an array.
type Field struct {
	Name  string
	Type  dtype.Type
	Shape []int // -1 for the length of a list that is not known yet

	Logical string // see source.Field
	Nodes   []Node
	Values  *Field // rows of the dictionary, where the last node is one

	declared []int // Shape with the lengths that the schema's metadata declare
}

// Fields describes how the columns of a schema are stored, and what their rows
// are: of the shape that is asked for, where there is one. A column whose rows
// cannot be those of an array has a reason with a remedy instead of a field. It
// is InvalidArgument if a shape does not fit its column, or has none.
func Fields(s *arrowmeta.Schema, shapes map[string][]int) (fields []*Field, reasons []string, err error) {
	rows, reasons := s.Rows()
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		if err := takesShape(name, s.Fields, reasons); err != nil {
			return nil, nil, err
		}
	}
	fields = make([]*Field, len(rows))
	for i := range rows {
		if reasons[i] != "" {
			continue
		}
		f := describe(&s.Fields[i], rows[i])
		if shape := shapes[f.Name]; shape != nil {
			if err := f.Resolve(shape); err != nil {
				return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "field %q %w", f.Name, err).
					WithHint("leave its shape out, or correct it").With("field", f.Name)
			}
		}
		fields[i] = f
	}
	return fields, reasons, nil
}

// takesShape makes sure that the first column of the name has rows.
func takesShape(name string, columns []arrowmeta.Field, reasons []string) error {
	var names []string
	for i := range columns {
		if columns[i].Name != name {
			if quoted := strconv.Quote(columns[i].Name); !slices.Contains(names, quoted) {
				names = append(names, quoted)
			}
			continue
		}
		if reasons[i] == "" {
			return nil
		}
		return status.Errorf(status.InvalidArgument, "arrowio", "a shape is given for %q, which cannot be an array: %s", name, reasons[i]).With("field", name)
	}
	more := ""
	if len(names) > 12 {
		names, more = names[:12], ", …"
	}
	return status.Errorf(status.InvalidArgument, "arrowio", "a shape is given for %q, but there is no such column", name).
		WithHint("there are %s%s", strings.Join(names, ", "), more).With("field", name)
}

// Measure sets the lengths that are open: as the metadata declare them, and
// those that are open then as first finds them in the data. It gives the reason
// where they do not fit.
func (f *Field) Measure(first func(shape []int) (reason string, err error)) (reason string, err error) {
	shape := slices.Clone(f.declared)
	if slices.Contains(shape, -1) {
		if reason, err := first(shape); reason != "" || err != nil {
			return reason, err
		}
	}
	if err := f.Resolve(shape); err != nil {
		return "it " + err.Error(), nil
	}
	return "", nil
}

// Open says whether the length of some list is not known yet.
func (f *Field) Open() bool { return slices.Contains(f.Shape, -1) }

// Resolve sets the lengths of all lists. A shape of more dimensions than the
// field has folds a row of the same number of elements. It fails if the shape
// contradicts what the schema says.
func (f *Field) Resolve(shape []int) error {
	if len(shape) > len(f.Shape) && f.fold(shape) {
		return nil
	}
	elements := 1
	for _, d := range shape {
		if d < 0 {
			return fmt.Errorf("cannot have rows of shape %v: no length is worked out from the others", shape)
		}
		if d > 0 && elements > maxRowBytes/d {
			return fmt.Errorf("cannot have rows of shape %v: that is too large", shape)
		}
		elements *= max(d, 1)
	}
	if len(shape) != len(f.Shape) {
		return f.otherRank(shape, elements)
	}
	for i, d := range shape {
		if f.Shape[i] >= 0 && f.Shape[i] != d {
			return fmt.Errorf("has rows of %d elements in dimension %d by its type, where shape %v has %d", f.Shape[i], i, shape, d)
		}
	}
	copy(f.Shape, shape)
	for i := range f.Nodes {
		if f.Nodes[i].Kind == List {
			f.Nodes[i].Size = shape[i]
		}
	}
	return nil
}

// otherRank says why rows cannot have a shape of more or fewer dimensions.
func (f *Field) otherRank(shape []int, elements int) error {
	switch {
	case len(f.Shape) == 0:
		return fmt.Errorf("has one value in each record, not rows of shape %v", shape)
	case len(shape) > len(f.Shape) && !f.Open():
		return fmt.Errorf("has rows of %d values, but shape %v needs %d", f.RowElements(), shape, elements)
	case len(f.Shape) == 1:
		return fmt.Errorf("has rows of 1 dimension, not %d", len(shape))
	}
	return fmt.Errorf("has rows of %d dimensions, not %d", len(f.Shape), len(shape))
}

// fold gives the elements of a row, in their order, the shape. It is false if
// there are more or fewer of them. A list takes any length.
func (f *Field) fold(shape []int) bool {
	elements := 1
	for _, d := range shape {
		if d <= 0 || elements > maxRowBytes/d {
			return false
		}
		elements *= d
	}
	switch {
	case len(f.Shape) == 0 || len(shape) > maxRank:
		return false
	case !f.Open():
		if elements != f.RowElements() {
			return false
		}
	case len(f.Shape) > 1:
		return false
	default:
		f.Nodes[0].Size = elements
	}
	f.Shape = append([]int{}, shape...)
	return true
}

// bits gives the size of a whole row of the source in bits.
func (f *Field) bits(node int) int {
	n := 1
	for _, level := range f.Nodes[node:] {
		switch level.Kind {
		case Fixed, List:
			n *= level.Size
		case Coded:
			return n * 8 * f.Values.RowBytes()
		case Values:
			if level.Size > 0 {
				n *= 8 * level.Size
			}
		}
	}
	return n
}

// RowBytes gives the size of a row of bytes, or of a packed row of bits.
func (f *Field) RowBytes() int { return (f.bits(0) + 7) / 8 }

// Source gives the field as sources describe it.
func (f *Field) Source(nullable bool) source.Field {
	return source.Field{Name: f.Name, Type: f.Type, Shape: f.Shape, Nullable: nullable, Logical: f.Logical}
}

// Bounds on what a row may be. They keep products far from overflow.
const (
	maxRank     = arrowmeta.MaxRank
	maxRowBytes = arrowmeta.MaxRowBytes
)

// DTypeKey is the key of a field's metadata by which values of 16 bits are
// marked as bfloat16, which Arrow has no type for.
const DTypeKey = arrowmeta.DTypeKey

// describe says how a field with such rows is stored.
func describe(f *arrowmeta.Field, rows arrowmeta.Rows) *Field {
	d := &Field{Name: f.Name, Type: rows.Type, Shape: rows.Shape, Logical: rows.Logical, declared: rows.Declared}
	d.addNodes(f)
	return d
}

// addNodes adds the nodes of f and its children, which Rows found sound.
func (d *Field) addNodes(f *arrowmeta.Field) {
	t := &f.Type
	switch {
	case f.Dictionary != nil:
		plain := *f
		plain.Dictionary = nil
		rows, _ := plain.Rows()
		d.Values = describe(&plain, rows)
		index, _ := f.Dictionary.Index.DType()
		d.Nodes = append(d.Nodes, Node{Kind: Coded, Width: index.Size(), Signed: f.Dictionary.Index.Signed})
	case t.Kind == arrowmeta.FixedSizeList:
		d.Nodes = append(d.Nodes, Node{Kind: Fixed, Size: t.ListSize})
		d.addNodes(&t.Children[0])
	case t.Kind == arrowmeta.List || t.Kind == arrowmeta.LargeList:
		width := 4
		if t.Kind == arrowmeta.LargeList {
			width = 8
		}
		d.Nodes = append(d.Nodes, Node{Kind: List, Size: -1, Width: width})
		d.addNodes(&t.Children[0])
	default:
		bits, _ := t.Bits()
		d.Nodes = append(d.Nodes, Node{Kind: Values, Size: int(bits / 8)}) // 0 for a bit
	}
}
