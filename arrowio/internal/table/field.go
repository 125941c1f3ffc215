package table

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
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
	Name   string
	Type   dtype.Type
	Shape  []int // -1 for the length of a list that is not known yet
	Nodes  []Node
	Values *Field // rows of the dictionary, where the last node is one
}

// Open says whether the length of some list is not known yet.
func (f *Field) Open() bool {
	for _, d := range f.Shape {
		if d < 0 {
			return true
		}
	}
	return false
}

// Resolve sets the lengths of all lists. A shape of more dimensions than the
// field has folds a row of the same number of elements. It fails if the shape
// contradicts what the schema says.
func (f *Field) Resolve(shape []int) error {
	if len(shape) > len(f.Shape) && f.fold(shape) {
		return nil
	}
	if len(shape) != len(f.Shape) {
		return fmt.Errorf("has rows of %d dimensions, not %d", len(f.Shape), len(shape))
	}
	elements := 1
	for i, d := range shape {
		if f.Shape[i] >= 0 && f.Shape[i] != d {
			return fmt.Errorf("has rows of shape %v by its type, not %v", f.Shape, shape)
		}
		if d < 0 || d > 0 && elements > maxRowBytes/d {
			return fmt.Errorf("cannot have rows of shape %v", shape)
		}
		elements *= max(d, 1)
	}
	copy(f.Shape, shape)
	for i := range f.Nodes {
		if f.Nodes[i].Kind == List {
			f.Nodes[i].Size = shape[i]
		}
	}
	return nil
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
	return source.Field{Name: f.Name, Type: f.Type, Shape: f.Shape, Nullable: nullable}
}

// Bounds on what a row may be. They keep products far from overflow.
const (
	maxRank     = 32
	maxRowBytes = 1 << 31
)

// DTypeKey is the key of a field's metadata by which values of 16 bits are
// marked as bfloat16, which Arrow has no type for.
const DTypeKey = "meshfeed.dtype"

// Describe says how the field is stored. A field whose rows cannot be rows of
// an array gives a nil Field and the reason with a remedy.
func Describe(f *arrowmeta.Field) (*Field, string) {
	d := describer{field: &Field{Name: f.Name, Shape: []int{}}}
	reason := d.node(f)
	if reason == "" {
		reason = d.extension(f)
	}
	if reason != "" {
		return nil, reason
	}
	return d.field, ""
}

type describer struct{ field *Field }

// node adds the nodes of f and its children.
func (d *describer) node(f *arrowmeta.Field) string {
	t := &f.Type
	switch {
	case f.Dictionary != nil:
		return d.dictionary(f)
	case t.Kind == arrowmeta.FixedSizeList:
		return d.list(t, Node{Kind: Fixed, Size: t.ListSize})
	case t.Kind == arrowmeta.List:
		return d.list(t, Node{Kind: List, Size: -1, Width: 4})
	case t.Kind == arrowmeta.LargeList:
		return d.list(t, Node{Kind: List, Size: -1, Width: 8})
	case t.Kind == arrowmeta.FixedSizeBinary:
		return d.values(dtype.Uint8, t.ByteWidth, []int{t.ByteWidth})
	}
	typ, ok := t.DType()
	if !ok {
		return refusal(t)
	}
	size := typ.Size()
	if typ == dtype.Bool {
		size = 0
	}
	return d.values(typ, size, nil)
}

func (d *describer) list(t *arrowmeta.Type, n Node) string {
	if len(d.field.Nodes) >= maxRank-1 {
		return fmt.Sprintf("lists are nested more than %d deep", maxRank)
	}
	d.field.Nodes = append(d.field.Nodes, n)
	d.field.Shape = append(d.field.Shape, n.Size)
	return d.node(&t.Children[0])
}

func (d *describer) values(typ dtype.Type, size int, shape []int) string {
	f := d.field
	f.Type = typ
	f.Shape = append(f.Shape, shape...)
	f.Nodes = append(f.Nodes, Node{Kind: Values, Size: size})
	bytes := typ.Size()
	for _, n := range f.Shape {
		switch {
		case n == 0:
			return "its rows have no elements"
		case n > 0 && bytes > maxRowBytes/n:
			return fmt.Sprintf("a row has more than %d bytes", maxRowBytes)
		case n > 0:
			bytes *= n
		}
	}
	return ""
}

// dictionary adds the node of a dictionary-encoded field.
func (d *describer) dictionary(f *arrowmeta.Field) string {
	plain := *f
	plain.Dictionary = nil
	values, reason := Describe(&plain)
	index, ok := f.Dictionary.Index.DType()
	switch {
	case reason != "":
		if f.Type.Kind == arrowmeta.String || f.Type.Kind == arrowmeta.LargeString {
			return "its dictionary holds text; store the indices instead, for example column.combine_chunks().indices in pyarrow"
		}
		return reason
	case !ok || !index.IsInteger():
		return "its dictionary has indices of type " + f.Dictionary.Index.String()
	case values.Open():
		return "its dictionary holds lists of variable length; store plain values"
	case values.Values != nil:
		return "its dictionary holds lists of another dictionary's values; store plain values"
	case values.Type == dtype.Bool:
		return "its dictionary holds booleans; store plain values"
	}
	d.field.Values = values
	d.field.Type = values.Type
	d.field.Shape = append(d.field.Shape, values.Shape...)
	d.field.Nodes = append(d.field.Nodes, Node{Kind: Coded, Width: index.Size(), Signed: f.Dictionary.Index.Signed})
	return ""
}

// extension applies what the field's metadata say about its storage.
func (d *describer) extension(f *arrowmeta.Field) string {
	if name, ok := f.Metadata.Get(DTypeKey); ok {
		return d.bfloat16(name)
	}
	tensor, err := f.Tensor()
	if err != nil {
		return err.Error()
	}
	if tensor == nil {
		return ""
	}
	for i, p := range tensor.Permutation {
		if p != i {
			return fmt.Sprintf("its tensors are stored permuted %v; write them in C order", tensor.Permutation)
		}
	}
	if len(d.field.Nodes) != 2 {
		return "its tensors hold lists"
	}
	if len(tensor.Shape)+len(d.field.Shape)-1 > maxRank {
		return fmt.Sprintf("its rows have more than %d dimensions", maxRank)
	}
	d.field.Shape = append(append([]int{}, tensor.Shape...), d.field.Shape[1:]...)
	return ""
}

// bfloat16 reads the 16 bits of every value as a bfloat16.
func (d *describer) bfloat16(name string) string {
	f := d.field
	leaf := &f.Nodes[len(f.Nodes)-1]
	if name != dtype.BFloat16.String() {
		return fmt.Sprintf("its metadata say %s=%q; only %q is known", DTypeKey, name, dtype.BFloat16)
	}
	switch {
	case f.Type == dtype.Uint16 && f.Values == nil:
	case f.Type == dtype.Uint8 && leaf.Kind == Values && leaf.Size == 2:
		f.Shape = f.Shape[:len(f.Shape)-1]
	default:
		return "its metadata say bfloat16, but its values are neither uint16 nor fixed_size_binary[2]"
	}
	f.Type = dtype.BFloat16
	return ""
}

// refusal says why values of a type cannot be elements of an array.
func refusal(t *arrowmeta.Type) string {
	switch t.Kind {
	case arrowmeta.String, arrowmeta.LargeString, arrowmeta.StringView:
		return "text has no fixed size; store token ids as a fixed-size list of integers"
	case arrowmeta.Binary, arrowmeta.LargeBinary, arrowmeta.BinaryView:
		return "binary values have no fixed size; store decoded elements as a fixed-size list, or bytes as fixed-size binary"
	case arrowmeta.Struct:
		return "a struct has no single type; store its children as columns of their own"
	case arrowmeta.Decimal:
		return "arrays have no decimal type; cast it to float64 or to an integer"
	case arrowmeta.Null:
		return "it holds nothing but nulls"
	case arrowmeta.ListView, arrowmeta.LargeListView:
		return "list views are not read; cast it to a list or a fixed-size list"
	case arrowmeta.RunEndEncoded:
		return "run-end encoded values are not read; store plain values"
	case arrowmeta.Interval:
		return "intervals of several parts have no single type; store integers"
	case arrowmeta.Map, arrowmeta.Union:
		return fmt.Sprintf("a %v has no single type; store plain columns", t.Kind)
	}
	return "arrays have no such type"
}
