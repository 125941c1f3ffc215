package arrowtype

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// Elements are what the bytes of a binary value hold: elements of a type in a shape, in C order
// and little-endian.
type Elements struct {
	Type  dtype.Type
	Shape []int
}

// IsBytes reports whether the rows are binary values.
func (f *Field) IsBytes() bool {
	_, fixed := f.Values().(fixed)
	return f.Ragged == 1 && strings.Contains(f.Logical, "binary") ||
		fixed && len(f.Levels) == 1 && f.Type == dtype.Uint8 && len(f.Shape) == 1
}

// SetElements sets Bytes for rows that are binary values. It fails if they hold no such
// elements, as far as the type tells.
func (f *Field) SetElements(e Elements) error {
	size, ok := product(e.Type.Size(), e.Shape)
	switch {
	case !f.IsBytes():
		return fmt.Errorf("holds no binary values, so its elements cannot be read as %v", e.Type)
	case e.Type == dtype.Bool:
		return fmt.Errorf("holds bytes, which cannot be read as %v", e.Type)
	case !ok || len(e.Shape) > maxRank:
		return fmt.Errorf("cannot have rows of shape %v", e.Shape)
	case f.Ragged == 0 && size != f.RowBytes():
		return fmt.Errorf("has rows of %d bytes, but rows of shape %v and type %v have %d", f.RowBytes(), e.Shape, e.Type, size)
	}
	f.Bytes = &Elements{e.Type, slices.Clone(e.Shape)}
	return nil
}
