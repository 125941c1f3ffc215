package source

import (
	"slices"
	"strings"
)

// Unify returns a field for the rows of two fields with the same values. Text agrees with text,
// and bytes with bytes, whatever the Arrow types that store them. Lists of one length agree with
// lists of any length. All other types and shapes must be equal. The field has the names of classes
// of the first one.
func (f Field) Unify(g Field) (Field, bool) {
	if f.Ragged != g.Ragged || !slices.Equal(f.Shape, g.Shape) {
		f, g = f.anyLength(), g.anyLength()
	}
	if f.Type != g.Type || f.Ragged != g.Ragged || !slices.Equal(f.Shape, g.Shape) {
		return f, false
	}
	f.Lists, f.Mapped = f.Lists || g.Lists, f.Mapped || g.Mapped
	f.Nullable, f.HasNulls = f.Nullable || g.Nullable, f.HasNulls || g.HasNulls
	if f.Logical == g.Logical {
		return f, true
	}
	plain := ""
	if strings.Contains(f.Logical+g.Logical, "large_") {
		plain = "large_"
	}
	switch {
	case f.IsText() && g.IsText():
		f.Logical = plain + "string"
	case f.IsBytes() && g.IsBytes():
		f.Logical = plain + "binary"
	default:
		return f, false
	}
	return f, true
}

// anyLength returns a field without the length that its lists happen to have.
func (f Field) anyLength() Field {
	if f.Lists {
		f.Lists, f.Ragged, f.Shape = false, 1, f.Shape[1:]
	}
	return f
}
