package arrowmeta

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Keys of the field metadata that hold an extension type.
const (
	extensionName     = "ARROW:extension:name"
	extensionMetadata = "ARROW:extension:metadata"
)

// Bounds on what metadata may declare.
const (
	maxRank          = 32
	maxExtensionJSON = 64 << 10
)

// Extension gives the name and the parameters of the field's extension type,
// and false where it has none. The field's Type is that of the storage.
func (f *Field) Extension() (name, parameters string, ok bool) {
	name, ok = f.Metadata.Get(extensionName)
	parameters, _ = f.Metadata.Get(extensionMetadata)
	return name, parameters, ok
}

// Tensor holds the parameters of the extension type arrow.fixed_shape_tensor.
type Tensor struct {
	Shape       []int    // of a row as it is stored, row-major
	Permutation []int    // dimension i of the row means stored dimension Permutation[i]; nil for the identity
	DimNames    []string // of the stored dimensions; may be nil
}

// Tensor gives the parameters of a field of type arrow.fixed_shape_tensor, nil
// for any other field, and an error where they do not fit the storage.
func (f *Field) Tensor() (*Tensor, error) {
	name, text, _ := f.Extension()
	if name != "arrow.fixed_shape_tensor" {
		return nil, nil
	}
	t, err := parseTensor(text)
	if err == nil {
		err = f.fits(t.Shape)
	}
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowmeta", "field %q: arrow.fixed_shape_tensor: %w", f.Name, err)
	}
	return t, nil
}

// fits says whether the storage has as many elements as the shape.
func (f *Field) fits(shape []int) error {
	if f.Type.Kind != FixedSizeList {
		return fmt.Errorf("the storage is %s instead of a fixed-size list", f.Type.String())
	}
	if n, ok := product(shape); !ok || n != f.Type.ListSize {
		return fmt.Errorf("shape %v does not fill a list of %d", shape, f.Type.ListSize)
	}
	return nil
}

func parseTensor(text string) (*Tensor, error) {
	if len(text) > maxExtensionJSON {
		return nil, fmt.Errorf("parameters of %d bytes", len(text))
	}
	p, err := jsontext.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the parameters are no JSON: %w", err)
	}
	t := Tensor{}
	for key, value := range p.Members() {
		switch key {
		case "shape":
			t.Shape, err = list(key, value, integer, "integer")
		case "permutation":
			t.Permutation, err = list(key, value, integer, "integer")
		case "dim_names":
			t.DimNames, err = list(key, value, jsontext.Value.Text, "string")
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case t.Shape == nil:
		return nil, errors.New("no shape")
	case len(t.Shape) > maxRank:
		return nil, fmt.Errorf("%d dimensions", len(t.Shape))
	case t.DimNames != nil && len(t.DimNames) != len(t.Shape):
		return nil, fmt.Errorf("%d names for %d dimensions", len(t.DimNames), len(t.Shape))
	case t.Permutation != nil && !isPermutation(t.Permutation, len(t.Shape)):
		return nil, fmt.Errorf("permutation %v of %d dimensions", t.Permutation, len(t.Shape))
	}
	return &t, nil
}

// list reads a list whose elements get understands; null is no list.
func list[T any](key string, v jsontext.Value, get func(jsontext.Value) (T, bool), kind string) ([]T, error) {
	if v.Kind() == jsontext.Null {
		return nil, nil
	}
	if v.Kind() != jsontext.List {
		return nil, fmt.Errorf("the parameter %q is no list", key)
	}
	all := []T{}
	for e := range v.Elements() {
		element, ok := get(e)
		if !ok {
			return nil, fmt.Errorf("the parameter %q holds %.20s, which is no %s", key, e, kind)
		}
		all = append(all, element)
	}
	return all, nil
}

func isPermutation(p []int, n int) bool {
	var seen [maxRank]bool
	for _, d := range p {
		if d < 0 || d >= n || seen[d] {
			return false
		}
		seen[d] = true
	}
	return len(p) == n
}

// product multiplies the sizes, and is false for negative sizes and for a
// product that overflows.
func product(shape []int) (int, bool) {
	n, zero := 1, false
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, false
		case d == 0:
			zero = true
		case n > math.MaxInt/d:
			return 0, false
		default:
			n *= d
		}
	}
	if zero {
		return 0, true
	}
	return n, true
}

// arrayXD gives the shape that a field of one of Hugging Face's types Array2D to
// Array5D has in its parameters, [[2, 3], "float32"]. Unknown sizes are -1.
func (f *Field) arrayXD() []int {
	name, text, _ := f.Extension()
	if !strings.HasPrefix(name, "datasets.features.features.Array") || len(text) > maxExtensionJSON {
		return nil
	}
	p, err := jsontext.Parse([]byte(text))
	if err != nil {
		return nil
	}
	var shape []int
	n := 0
	for e := range p.Elements() {
		if n++; n == 1 {
			shape = sizes(e)
		}
	}
	if n != 2 {
		return nil
	}
	return shape
}

// sizes reads a declared shape with -1 for null, and gives nil for one that no
// row can have.
func sizes(declared jsontext.Value) []int {
	var shape []int
	for d := range declared.Elements() {
		n, ok := size(d)
		if !ok || len(shape) == maxRank {
			return nil
		}
		shape = append(shape, n)
	}
	return shape
}

// integer reads a number as Go counts.
func integer(v jsontext.Value) (int, bool) {
	n, ok := v.Int()
	return int(n), ok
}

// size reads a declared size with -1 for null.
func size(declared jsontext.Value) (int, bool) {
	if declared.Kind() == jsontext.Null {
		return -1, true
	}
	n, ok := declared.Int()
	return int(n), ok && n >= 0 && n <= math.MaxInt32
}
