package arrowtype

import (
	"errors"
	"fmt"
	"slices"
)

// Open reports whether the length of some list is not known yet.
func (f *Field) Open() bool { return slices.Contains(f.Shape, -1) }

// Measure sets the open lengths to the declared lengths. For lists without a declared length, it
// calls measure, which replaces each -1 in the shape by the length in the data. Measure returns the
// reason if the lengths do not fit.
func (f *Field) Measure(measure func(shape []int) (reason string, err error)) (reason string, err error) {
	shape := slices.Clone(f.Declared)
	if slices.Contains(shape, -1) {
		if reason, err := measure(shape); reason != "" || err != nil {
			return reason, err
		}
	}
	if err := f.Resolve(shape); err != nil {
		return "it " + err.Error(), nil
	}
	return "", nil
}

// Resolve sets the lengths of all lists. If the shape has more dimensions than the field, a row is
// reshaped to it, which needs the same number of elements. Resolve fails if the shape contradicts
// the schema.
func (f *Field) Resolve(shape []int) error {
	if f.Ragged > 0 {
		return errors.New("holds text, whose rows have no shape")
	}
	if len(shape) > len(f.Shape) && f.fold(shape) {
		return nil
	}
	elements := 1
	for _, d := range shape {
		if d < 0 {
			return fmt.Errorf("cannot have rows of shape %v: no length is worked out from the others", shape)
		}
		if d > 0 && elements > MaxRowBytes/d {
			return fmt.Errorf("cannot have rows of shape %v: that is too large", shape)
		}
		elements *= max(d, 1)
	}
	if len(shape) != len(f.Shape) {
		return f.rankError(shape, elements)
	}
	for i, d := range shape {
		if f.Shape[i] >= 0 && f.Shape[i] != d {
			return fmt.Errorf("has rows of %d elements in dimension %d by its type, where shape %v has %d", f.Shape[i], i, shape, d)
		}
	}
	copy(f.Shape, shape)
	for i := range f.Levels {
		f.setLength(i, shape)
	}
	return nil
}

// setLength sets the length of a level of lists with offsets. Level i is dimension i of the shape,
// because only the last level of lists may be a tensor, which has several dimensions.
func (f *Field) setLength(level int, shape []int) {
	if l, ok := f.Levels[level].(*list); ok {
		l.length = shape[level]
	}
}

// rankError returns why rows cannot have a shape of more or fewer dimensions.
func (f *Field) rankError(shape []int, elements int) error {
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

// fold reshapes the elements of a row in their order. It returns false if the shape
// has another number of elements. A single list takes any length.
func (f *Field) fold(shape []int) bool {
	elements, ok := product(1, shape)
	switch {
	case !ok || len(f.Shape) == 0 || len(shape) > maxRank:
		return false
	case !f.Open():
		if elements != f.RowElements() {
			return false
		}
	case len(f.Shape) > 1:
		return false
	default:
		f.setLength(0, []int{elements})
	}
	f.Shape = slices.Clone(shape)
	return true
}
