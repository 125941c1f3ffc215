package arrowmeta

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// Bounds on what a row may be. They keep products far from overflow.
const (
	MaxRank     = maxRank
	MaxRowBytes = 1 << 31
)

// DTypeKey is the key of a field's metadata by which values of 16 bits are
// marked as bfloat16, which Arrow has no type for.
const DTypeKey = "meshfeed.dtype"

// Rows says what the rows of a field are as rows of an array.
type Rows struct {
	Type     dtype.Type
	Shape    []int  // of one row; -1 for a list of variable length, which the rows must agree on
	Declared []int  // Shape with the lengths that RowShapes gives, which need not be true; only of Schema.Rows
	Logical  string // the date, time, timestamp, duration or interval that integers stand for; "" for plain numbers
}

// Rows says for each field what its rows are, or gives the reason, with a
// remedy, why they cannot be those of an array.
func (s *Schema) Rows() (rows []Rows, reasons []string) {
	features, seen := s.huggingFace(), make(map[string]bool, len(s.Fields))
	declared := s.rowShapes(features)
	rows, reasons = make([]Rows, len(s.Fields)), make([]string, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		rows[i], reasons[i] = f.Rows()
		if media := encoded(features[f.Name]); media != "" && reasons[i] != "" {
			reasons[i] = media
		}
		if reason := unnamed(f.Name, seen); reason != "" {
			rows[i], reasons[i] = Rows{}, reason
		}
		seen[f.Name] = true
		rows[i].Declared = fill(rows[i].Shape, declared[i])
	}
	return rows, reasons
}

// unnamed gives the reason why a column cannot be asked for by its name.
func unnamed(name string, seen map[string]bool) string {
	switch {
	case name == "":
		return "it has no name; give the column one"
	case !utf8.ValidString(name):
		return "its name is not UTF-8; rename the column"
	case seen[name]:
		return "a column before it has the same name; rename one of them"
	case isPandasIndex(name):
		return "it is the index of a pandas table; drop it with df.reset_index(drop=True), or make it a column with df.reset_index()"
	}
	return ""
}

// isPandasIndex reports whether pandas wrote the column for an index without a
// name. A table that was filtered or shuffled has such a column, and one that
// was not has none, so an array of it would come and go with the rows.
func isPandasIndex(name string) bool {
	level, prefixed := strings.CutPrefix(name, "__index_level_")
	level, suffixed := strings.CutSuffix(level, "__")
	return prefixed && suffixed && level != "" && strings.Trim(level, "0123456789") == ""
}

// fill puts declared lengths where the type leaves them open.
func fill(shape, declared []int) []int {
	shape = slices.Clone(shape)
	for i := range shape {
		if shape[i] < 0 && len(declared) == len(shape) {
			shape[i] = declared[i]
		}
	}
	return shape
}

// Rows says what the rows are, or gives the reason, with a remedy, why they
// cannot be those of an array.
func (f *Field) Rows() (Rows, string) {
	r := rower{rows: Rows{Shape: []int{}}}
	if reason := r.field(f); reason != "" {
		return Rows{}, reason
	}
	return r.rows, ""
}

// rower goes down the levels of a field, from the lists to the values.
type rower struct {
	rows  Rows
	lists int  // levels of lists
	coded bool // the values stand in a dictionary
	bytes int  // of one fixed-size binary value
}

// field adds a field or a list's child: what it stores, and what its metadata
// make of that.
func (r *rower) field(f *Field) string {
	level := r.lists
	if reason := r.node(f); reason != "" {
		return reason
	}
	return r.extension(f, level)
}

func (r *rower) node(f *Field) string {
	t := &f.Type
	switch {
	case f.Dictionary != nil:
		return r.dictionary(f)
	case t.Kind == FixedSizeList:
		return r.list(t, t.ListSize)
	case t.Kind == List, t.Kind == LargeList:
		return r.list(t, -1)
	case t.Kind == FixedSizeBinary:
		r.bytes = t.ByteWidth
		return r.values(dtype.Uint8, t.ByteWidth)
	}
	typ, ok := t.DType()
	if !ok {
		return refusal(t)
	}
	if t.Kind.temporal() {
		r.rows.Logical = t.String()
	}
	return r.values(typ)
}

func (r *rower) list(t *Type, length int) string {
	if r.lists >= MaxRank-1 {
		return fmt.Sprintf("lists are nested more than %d deep; make fewer of them", MaxRank)
	}
	r.lists++
	r.rows.Shape = append(r.rows.Shape, length)
	return r.field(&t.Children[0])
}

func (r *rower) values(typ dtype.Type, shape ...int) string {
	r.rows.Type = typ
	r.rows.Shape = append(r.rows.Shape, shape...)
	bytes := typ.Size()
	for _, n := range r.rows.Shape {
		switch {
		case n == 0:
			return "its rows have no elements; leave the column out"
		case n > 0 && bytes > MaxRowBytes/n:
			return fmt.Sprintf("a row has more than %d bytes; cut the rows into smaller ones", MaxRowBytes)
		case n > 0:
			bytes *= n
		}
	}
	return ""
}

// dictionary goes on with what the dictionary holds.
func (r *rower) dictionary(f *Field) string {
	plain := *f
	plain.Dictionary = nil
	inner := rower{rows: Rows{Shape: []int{}}}
	reason := inner.field(&plain)
	index, ok := f.Dictionary.Index.DType()
	switch {
	case reason != "":
		switch f.Type.Kind {
		case String, LargeString, StringView:
			return "its dictionary holds text; store the indices instead: column.combine_chunks().indices in pyarrow, to_physical() in polars, cat.codes in pandas"
		}
		return reason
	case !ok || !index.IsInteger():
		return "its dictionary has indices of type " + f.Dictionary.Index.String() + "; store plain values"
	case slices.Contains(inner.rows.Shape, -1):
		return "its dictionary holds lists of variable length; store plain values"
	case inner.coded:
		return "its dictionary holds lists of another dictionary's values; store plain values"
	case inner.rows.Type == dtype.Bool:
		return "its dictionary holds booleans; store plain values"
	}
	r.coded = true
	r.rows.Type, r.rows.Logical = inner.rows.Type, inner.rows.Logical
	r.rows.Shape = append(r.rows.Shape, inner.rows.Shape...)
	return ""
}

// extension applies what the field's metadata say about its storage, which
// stands below so many levels of lists.
func (r *rower) extension(f *Field, level int) string {
	if name, ok := f.Metadata.Get(DTypeKey); ok {
		return r.bfloat16(name)
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
	if r.lists != level+1 {
		return "its tensors hold lists; store the elements themselves in them"
	}
	if len(tensor.Shape)+len(r.rows.Shape)-1 > MaxRank {
		return fmt.Sprintf("its rows have more than %d dimensions; make fewer of them", MaxRank)
	}
	r.rows.Shape = slices.Concat(r.rows.Shape[:level], tensor.Shape, r.rows.Shape[level+1:])
	return ""
}

// bfloat16 reads the 16 bits of every value as a bfloat16.
func (r *rower) bfloat16(name string) string {
	if name != dtype.BFloat16.String() {
		return fmt.Sprintf("its metadata say %s=%q; only %q is known", DTypeKey, name, dtype.BFloat16)
	}
	switch {
	case r.rows.Type == dtype.BFloat16: // by the metadata of a list's child
	case r.rows.Type == dtype.Uint16 && !r.coded:
	case r.rows.Type == dtype.Uint8 && r.bytes == 2 && !r.coded:
		r.rows.Shape = r.rows.Shape[:len(r.rows.Shape)-1]
	default:
		return "its metadata say bfloat16, but its values are neither uint16 nor fixed_size_binary[2]"
	}
	r.rows.Type = dtype.BFloat16
	return ""
}

// refusal says why values of a type cannot be elements of an array.
func refusal(t *Type) string {
	switch t.Kind {
	case String, LargeString, StringView:
		return "text has no fixed size; store token ids as a fixed-size list of integers"
	case Binary, LargeBinary, BinaryView:
		return "binary values have no fixed size; store decoded elements as a fixed-size list, or bytes as fixed-size binary"
	case Struct:
		return "a struct has no single type; store its children as columns of their own"
	case Decimal:
		return "arrays have no decimal type; cast it to float64 or to an integer"
	case Null:
		return "it holds nothing but nulls; leave the column out"
	case ListView, LargeListView:
		return "list views are not read; cast it to a list or a fixed-size list"
	case RunEndEncoded:
		return "run-end encoded values are not read; store plain values"
	case Interval:
		return "intervals of several parts have no single type; store integers"
	case Map, Union:
		return fmt.Sprintf("a %v has no single type; store plain columns", t.Kind)
	}
	if !t.Kind.Known() {
		return "its type is not known here; cast it to a type of numbers, or leave it out"
	}
	return fmt.Sprintf("arrays have no type %v; cast it to int64 or float64, or leave it out", t)
}
