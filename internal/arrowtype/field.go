package arrowtype

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Bounds on a row. They keep products far from overflow.
const (
	maxRank     = 32
	MaxRowBytes = 1 << 31
)

// Field describes how the rows of a column are stored, and what they are as rows
// of an array.
type Field struct {
	Name    string
	Type    dtype.Type
	Shape   []int    // shape of a row; -1 for the length of a list that is not known yet
	Ragged  int      // leading dimensions of varying size; Shape then describes one element of the innermost lists
	Logical string   // the date, time, timestamp, duration or interval that integers stand for, or the type of text and bytes; "" for plain numbers
	Levels  []Level  // from the column to its values
	Names   []string // names of the classes that integers stand for; nil if none are declared

	// Bytes says which elements the bytes of a row are, if the caller gave their shape.
	Bytes *Elements

	// Declared is Shape with the lengths that metadata declare. The rows need
	// not have them.
	Declared []int

	described []int // Shape as the type of the column describes it
}

// Describe describes every column of a schema. If the rows of a column cannot be rows of an
// array, the column has no field, but a reason with a remedy.
func Describe(s *arrowmeta.Schema) (fields []*Field, reasons []string) {
	features, seen := features(s), make(map[string]bool, len(s.Fields))
	unknown := s.Metadata.Reserved()
	fields, reasons = make([]*Field, len(s.Fields)), make([]string, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		field, reason := Of(f)
		if media := encodedMedia(features[f.Name]); media != "" && reason != "" {
			reason = media
		}
		if name := nameReason(f.Name, seen); name != "" {
			reason = name
		}
		if unknown != "" {
			reason = fmt.Sprintf("the metadata of the schema have the key %q, which is not known here; write the data without it", unknown)
		}
		seen[f.Name] = true
		if reasons[i] = reason; reason == "" {
			field.Declared = fill(field.Shape, declaredShape(f, features))
			field.Names = field.classes(features[f.Name])
			fields[i] = field
		}
	}
	return fields, reasons
}

// nameReason returns the reason why a column cannot be asked for by its name.
func nameReason(name string, seen map[string]bool) string {
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
// name. Only tables that were filtered or shuffled have such a column, so an
// array of it would be there for some data and not for others.
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

// Of describes a column, or returns the reason, with a remedy, why its rows
// cannot be rows of an array. It ignores the column's name.
func Of(f *arrowmeta.Field) (field *Field, reason string) {
	d := description{Field: &Field{Name: f.Name, Shape: []int{}}}
	if reason := d.field(f); reason != "" {
		return nil, reason
	}
	d.described = d.Shape
	if d.text {
		d.MakeRagged()
	}
	return d.Field, ""
}

// description collects what the levels of a column say.
type description struct {
	*Field
	lists  int // levels of lists so far
	binary int // bytes of a fixed-size binary value
	text   bool
}

// field adds the levels of a column or of a list's child, then applies its
// extension type.
func (d *description) field(f *arrowmeta.Field) string {
	outer := d.lists
	for _, k := range kinds {
		if k.matches(f) {
			if reason := k.describe(d, f); reason != "" {
				return reason
			}
			break
		}
	}
	return d.extension(f, outer)
}

// list adds a level of lists, and the levels of their child.
func (d *description) list(f *arrowmeta.Field, level List) string {
	if d.lists >= maxRank-1 {
		return fmt.Sprintf("lists are nested more than %d deep; make fewer of them", maxRank)
	}
	d.lists++
	d.Shape = append(d.Shape, level.Length())
	d.Levels = append(d.Levels, level)
	return d.field(&f.Type.Children[0])
}

// values adds the last level. Each value is of the shape.
func (d *description) values(level Values, typ dtype.Type, shape ...int) string {
	d.Type = typ
	d.Levels = append(d.Levels, level)
	d.Shape = append(d.Shape, shape...)
	bytes := typ.Size()
	for _, n := range d.Shape {
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

// Plain describes rows that lie in memory, each element whole bytes.
func Plain(name string, typ dtype.Type, shape []int) *Field {
	f := &Field{Name: name, Type: typ, Shape: append([]int{}, shape...)}
	for _, n := range shape {
		f.Levels = append(f.Levels, fixedSizeList(n))
	}
	f.Levels = append(f.Levels, fixed(typ.Size()))
	return f
}

// Listed describes rows of plain values in lists with offsets of 64 bits. The leading dimensions
// that are ragged have them, and the first dimension of a shape if listed is true. Its lists may then have other
// lengths than the shape says.
func Listed(name string, typ dtype.Type, shape []int, ragged int, listed bool) *Field {
	f := Plain(name, typ, shape)
	if listed {
		f.Levels[0] = &list{width: 8, length: shape[0]}
	}
	for range ragged {
		f.Levels = append([]Level{&list{width: 8, length: -1}}, f.Levels...)
	}
	f.Ragged = ragged
	return f
}

// Possible reports whether rows of an array may have the shape.
func Possible(typ dtype.Type, shape []int) bool {
	_, ok := product(typ.Size(), shape)
	return ok && len(shape) <= maxRank
}

// product multiplies size by the dimensions of a shape. The second result is false if
// a dimension is not positive, or if the product is more than MaxRowBytes.
func product(size int, shape []int) (int, bool) {
	for _, n := range shape {
		if n <= 0 || size > MaxRowBytes/n {
			return 0, false
		}
		size *= n
	}
	return size, true
}

// Values returns the last level.
func (f *Field) Values() Values { return f.Levels[len(f.Levels)-1].(Values) }

// List returns level n, which is not the last.
func (f *Field) List(n int) List { return f.Levels[n].(List) }

// Dictionary describes the values of the column's dictionary; it is nil if the
// column has none.
func (f *Field) Dictionary() *Field {
	switch d := f.Values().(type) {
	case *dictionary:
		return d.values
	case *TextDictionary:
		return d.values
	}
	return nil
}

// Packed reports whether the values are bits.
func (f *Field) Packed() bool { return f.Values() == Values(boolean{}) }

// Direct reports whether all positions in a row follow from its number.
func (f *Field) Direct() bool {
	return !slices.ContainsFunc(f.Levels, func(l Level) bool { return !l.Direct() })
}

// LastOffsets returns the innermost level of lists with offsets, or -1.
func (f *Field) LastOffsets() int {
	for n := len(f.Levels) - 2; n >= 0; n-- {
		if !f.Levels[n].Direct() {
			return n
		}
	}
	return -1
}

// RowElements returns the number of elements of a row.
func (f *Field) RowElements() int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// RowBits returns the size of a stored row, without offsets and bitmaps.
func (f *Field) RowBits() int64 { return f.bits(0) }

// bits returns the size of what an element of a level holds.
func (f *Field) bits(level int) int64 {
	n := f.Values().Size()
	for _, l := range f.Levels[level : len(f.Levels)-1] {
		n *= int64(l.(List).Length())
	}
	return n
}

// RowBytes returns the size of a stored row in bytes.
func (f *Field) RowBytes() int { return int((f.RowBits() + 7) / 8) }

// Elements returns how many elements of an array one element of a level holds.
func (f *Field) Elements(level int) int64 {
	if f.Packed() {
		return f.bits(level)
	}
	return f.bits(level) / 8 / int64(f.Type.Size())
}
