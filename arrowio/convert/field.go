package convert

import (
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/columns"
)

// field is a field as it is written.
type field struct {
	arrow arrowmeta.Field

	tensor int  // the first levels, this many, are one list of a tensor's elements; 0 if none are
	binary bool // the last two levels are one of fixed-size binary values
}

// newField describes how to write a field, which a file has as a column. Lists of one length
// become fixed-size lists, and dictionaries and views become plain values. Types that need
// no change keep their extension type.
func newField(f source.Field, column arrowmeta.Field) field {
	out := field{arrow: arrowmeta.Field{Name: f.Name, Nullable: f.Nullable || column.Nullable}}
	levels := columns.Levels(sixteen(f), false)
	inner := innermost(&column.Type)
	last := len(levels) - 1
	out.arrow.Type = valueType(levels[last], inner)
	if last--; last >= 0 && inner.Kind == arrowmeta.FixedSizeBinary && levels[last].Kind == columns.FixedList && levels[last].Size == inner.ByteWidth && f.Type == dtype.Uint8 {
		out.binary, out.arrow.Type, last = true, arrowmeta.Type{Kind: arrowmeta.FixedSizeBinary, ByteWidth: inner.ByteWidth}, last-1
	}
	out.tensor = tensorRank(f, &column, out.binary)
	lists := levels[:last+1]
	if out.tensor > 0 {
		lists = slices.Concat([]columns.Level{{Kind: columns.FixedList, Size: column.Type.ListSize}}, lists[out.tensor:])
	}
	for _, l := range slices.Backward(lists) {
		item := arrowmeta.Field{Name: "item", Nullable: true, Type: out.arrow.Type}
		out.arrow.Type = arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{item}}
		if l.Kind == columns.FixedList {
			out.arrow.Type.Kind, out.arrow.Type.ListSize = arrowmeta.FixedSizeList, l.Size
		}
	}
	same := column.Dictionary == nil && out.arrow.Type.String() == column.Type.String()
	for _, kv := range column.Metadata {
		extension := kv.Key == arrowmeta.ExtensionName || kv.Key == arrowmeta.ExtensionMetadata
		if kv.Key != arrowtype.DTypeKey && (!extension || same) {
			out.arrow.Metadata = append(out.arrow.Metadata, kv)
		}
	}
	if f.Type == dtype.BFloat16 {
		out.arrow.Metadata = append(out.arrow.Metadata, arrowmeta.KeyValue{Key: arrowtype.DTypeKey, Value: f.Type.String()})
	}
	return out
}

// innermost returns the type of the values in lists.
func innermost(t *arrowmeta.Type) *arrowmeta.Type {
	for len(t.Children) == 1 {
		t = &t.Children[0].Type
	}
	return t
}

// valueType returns the type of the values of a level, which a file has as another type.
func valueType(l columns.Level, stored *arrowmeta.Type) arrowmeta.Type {
	if l.Kind == columns.Text {
		kind := arrowmeta.Binary
		switch {
		case l.UTF8 && l.Wide:
			kind = arrowmeta.LargeString
		case l.UTF8:
			kind = arrowmeta.String
		case l.Wide:
			kind = arrowmeta.LargeBinary
		}
		return arrowmeta.Type{Kind: kind}
	}
	if t, ok := stored.DType(); ok && t == l.Type {
		return *stored
	}
	t := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8 * l.Type.Size(), Signed: strings.HasPrefix(l.Type.String(), "int")}
	switch l.Type {
	case dtype.Bool:
		t = arrowmeta.Type{Kind: arrowmeta.Bool, BitWidth: 1}
	case dtype.Float16, dtype.Float32, dtype.Float64:
		t = arrowmeta.Type{Kind: arrowmeta.Float, BitWidth: 8 * l.Type.Size()}
	}
	return t
}

// tensorRank returns the number of dimensions of the rows of arrow.fixed_shape_tensor, or 0
// for another type, and for rows that were given another shape.
func tensorRank(f source.Field, column *arrowmeta.Field, binary bool) int {
	name, _ := column.Extension()
	if name != "arrow.fixed_shape_tensor" || f.Ragged > 0 || column.Type.Kind != arrowmeta.FixedSizeList {
		return 0
	}
	stored, reason := arrowtype.Of(column)
	if reason != "" || !slices.Equal(stored.Shape, f.Shape) {
		return 0
	}
	if binary {
		return len(f.Shape) - 1
	}
	return len(f.Shape)
}

// levels returns the levels of some rows as the field is written.
func (f *field) levels(list []columns.Level) []columns.Level {
	list = slices.Clone(list)
	if f.tensor > 0 {
		list[0].Size = f.arrow.Type.ListSize
		list = slices.Delete(list, 1, f.tensor)
	}
	if n := len(list); f.binary {
		list[n-2].Kind, list[n-2].Data = columns.Values, list[n-1].Data
		list = list[:n-1]
	}
	return list
}

// sixteen replaces bfloat16 by uint16, since Arrow has no type for bfloat16.
func sixteen(f source.Field) source.Field {
	if f.Type == dtype.BFloat16 {
		f.Type = dtype.Uint16
	}
	return f
}

// plain is a source with uint16 in place of bfloat16.
type plain struct{ source.Source }

func (p plain) Schema() source.Schema {
	s := p.Source.Schema()
	s.Fields = slices.Clone(s.Fields)
	for i := range s.Fields {
		s.Fields[i] = sixteen(s.Fields[i])
	}
	return s
}
