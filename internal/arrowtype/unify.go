package arrowtype

import (
	"slices"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// families are types with the same values, stored in different ways: the plain type, that with
// 64-bit offsets, and any others.
var families = [][]arrowmeta.Kind{
	{arrowmeta.String, arrowmeta.LargeString, arrowmeta.StringView},
	{arrowmeta.Binary, arrowmeta.LargeBinary, arrowmeta.BinaryView},
	{arrowmeta.List, arrowmeta.LargeList},
}

// Unify returns a field that can hold the values of two columns if their value types agree:
// text, bytes and lists of any offsets, views, and dictionaries. A column of nulls agrees
// with every other. If both types are equal, it is the first field. ok is false if the
// types disagree.
func Unify(a, b *arrowmeta.Field) (f arrowmeta.Field, ok bool) {
	if a.TypeString() == b.TypeString() {
		return *a, true
	}
	if IsNull(a) {
		a, b = b, a
	}
	f = *a
	if f.Nullable = a.Nullable || b.Nullable; IsNull(b) {
		f.Nullable = true
		return f, true
	}
	f.Dictionary = nil
	if i, k := Member(a), Member(b); i >= 0 && k >= 0 {
		content, ok := Unify(&a.Type.Children[i], &b.Type.Children[k])
		f.Type.Children = slices.Clone(f.Type.Children)
		f.Type.Children[i] = content
		return f, ok
	}
	for _, family := range families {
		if !slices.Contains(family, a.Type.Kind) || !slices.Contains(family, b.Type.Kind) {
			continue
		}
		if f.Type.Kind = family[0]; a.Type.Kind == family[1] || b.Type.Kind == family[1] {
			f.Type.Kind = family[1]
		}
		return f, unifyChildren(&f, a, b)
	}
	if a.Type.Kind == arrowmeta.FixedSizeList && b.Type.Kind == arrowmeta.FixedSizeList {
		return f, a.Type.ListSize == b.Type.ListSize && unifyChildren(&f, a, b)
	}
	return f, a.Type.String() == b.Type.String()
}

// unifyChildren sets the child of lists to one for the values of both. It returns false if the
// children disagree.
func unifyChildren(f, a, b *arrowmeta.Field) (ok bool) {
	if len(a.Type.Children) == 0 {
		return true
	}
	child, ok := Unify(&a.Type.Children[0], &b.Type.Children[0])
	f.Type.Children = []arrowmeta.Field{child}
	return ok
}

// IsNull reports whether a column holds nothing but nulls, by its type.
func IsNull(f *arrowmeta.Field) bool {
	return f.Type.Kind == arrowmeta.Null && f.Dictionary == nil
}

// OnlyNulls reports whether a column, or the values of its lists, are nulls by their type.
func OnlyNulls(f *arrowmeta.Field) bool {
	for len(f.Type.Children) == 1 {
		f = &f.Type.Children[0]
	}
	return IsNull(f)
}

// SameDepth reports whether the lists of two columns are nested equally deep.
func SameDepth(a, b *arrowmeta.Field) bool {
	x, y := len(a.Type.Children), len(b.Type.Children)
	return x == y && (x == 0 || SameDepth(&a.Type.Children[0], &b.Type.Children[0]))
}

// Like copies the shape of another field, which is stored in another way.
func (f *Field) Like(other *Field) {
	f.Shape, f.Ragged = slices.Clone(other.Shape), other.Ragged
	for n := range min(len(f.Levels), len(other.Levels)) {
		switch to := f.Levels[n].(type) {
		case *list:
			to.length = other.List(n).Length()
		case *nulls:
			if to.bits = 0; n >= other.Structs()+other.Ragged {
				to.bits = other.Elements(n) * 8 * int64(other.Type.Size())
			}
		}
	}
}
