package arrowtype

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// DTypeKey is the key of a field's metadata that marks values of 16 bits as
// bfloat16, which Arrow has no type for.
const DTypeKey = "meshfeed.dtype"

// maxExtensionJSON bounds the parameters of an extension type.
const maxExtensionJSON = 64 << 10

// extension applies the extension type of f, or the type that DTypeKey names. There
// are outer levels of lists around f.
func (d *description) extension(f *arrowmeta.Field, outer int) string {
	if reason := unknownMeaning(f); reason != "" {
		return reason
	}
	if name, ok := f.Metadata.Get(DTypeKey); ok {
		return d.bfloat16(name)
	}
	t, err := tensorOf(f)
	if err != nil {
		return err.Error()
	}
	if t == nil {
		return ""
	}
	for i, p := range t.Permutation {
		if p != i {
			return fmt.Sprintf("its tensors are stored permuted %v; write them in C order", t.Permutation)
		}
	}
	if d.lists != outer+1 {
		return "its tensors hold lists; store the elements themselves in them"
	}
	if len(t.Shape)+len(d.Shape)-1 > maxRank {
		return fmt.Sprintf("its rows have more than %d dimensions; make fewer of them", maxRank)
	}
	d.Shape = slices.Concat(d.Shape[:outer], t.Shape, d.Shape[outer+1:])
	return ""
}

// unknownMeaning returns a reason unless the stored values of a field are the values that its
// metadata describe.
func unknownMeaning(f *arrowmeta.Field) string {
	if key := f.Metadata.Reserved(arrowmeta.ExtensionName, arrowmeta.ExtensionMetadata); key != "" && !strings.HasPrefix(key, flightSQL) {
		return fmt.Sprintf("its metadata have the key %q, which is not known here; write the column without it", key)
	}
	name, parameters := f.Extension()
	switch {
	case name == "" || holdsBytes(f.Type.Kind) || storesValues(name, parameters):
		return ""
	case name == "arrow.bool8":
		return "its extension type arrow.bool8 stores booleans as int8; cast it to bool"
	}
	return fmt.Sprintf("its extension type %q is not known here, so that its %s may stand for other values; write the column without the extension type", name, f.TypeString())
}

// flightSQL begins keys that describe a column, such as by the name of its table.
const flightSQL = "ARROW:FLIGHT:SQL:"

// holdsBytes reports whether values are delivered as the bytes that are stored, whatever they stand
// for.
func holdsBytes(k arrowmeta.Kind) bool {
	switch k {
	case arrowmeta.Binary, arrowmeta.LargeBinary, arrowmeta.BinaryView, arrowmeta.FixedSizeBinary,
		arrowmeta.String, arrowmeta.LargeString, arrowmeta.StringView, arrowmeta.Struct:
		return true
	}
	return false
}

// storesValues reports whether the values of an extension type are stored as they are, so that only
// their shape, or what they measure, is in its parameters. The types belong to Arrow,
// Hugging Face's datasets (older releases pickle their class), Ray Data, Awkward Array and GeoArrow.
func storesValues(name, parameters string) bool {
	switch name {
	case "arrow.fixed_shape_tensor", "ray.data.arrow_tensor", "ray.data.arrow_tensor_v2", "awkward":
		return true
	case "arrow.py_extension_type":
		return strings.Contains(parameters, "datasets.features")
	}
	return strings.HasPrefix(name, arrayTypes) || strings.HasPrefix(name, "geoarrow.")
}

// bfloat16 reads the 16 bits of every value as a bfloat16.
func (d *description) bfloat16(name string) string {
	if name != dtype.BFloat16.String() {
		return fmt.Sprintf("its metadata say %s=%q; only %q is known", DTypeKey, name, dtype.BFloat16)
	}
	plain := d.Dictionary() == nil
	switch {
	case d.Type == dtype.BFloat16: // by the metadata of a list's child
	case d.Type == dtype.Uint16 && plain:
	case d.Type == dtype.Uint8 && d.binary == 2 && plain:
		d.Shape = d.Shape[:len(d.Shape)-1]
	default:
		return "its metadata say bfloat16, but its values are neither uint16 nor fixed_size_binary[2]"
	}
	d.Type = dtype.BFloat16
	return ""
}

// tensor holds the parameters of the extension type arrow.fixed_shape_tensor.
type tensor struct {
	Shape       []int    // shape of a row as it is stored, row-major
	Permutation []int    // dimension i of the row means stored dimension Permutation[i]; nil for the identity
	DimNames    []string // names of the stored dimensions; may be nil
}

// tensorOf returns the parameters of a field of type arrow.fixed_shape_tensor,
// nil for any other field, and an error if they do not fit the storage.
func tensorOf(f *arrowmeta.Field) (*tensor, error) {
	name, text := f.Extension()
	if name != "arrow.fixed_shape_tensor" {
		return nil, nil
	}
	t, err := parseTensor(text)
	if err == nil {
		err = checkStorage(&f.Type, t.Shape)
	}
	if err != nil {
		return nil, fmt.Errorf("its extension type arrow.fixed_shape_tensor is damaged: %w; write the column again", err)
	}
	return t, nil
}

// checkStorage makes sure that the storage has as many elements as the shape.
func checkStorage(t *arrowmeta.Type, shape []int) error {
	if t.Kind != arrowmeta.FixedSizeList {
		return fmt.Errorf("the storage is %s instead of a fixed-size list", t.String())
	}
	left := t.ListSize // divided by one dimension after the other
	for _, d := range shape {
		if d <= 0 || left%d != 0 {
			left = 0
			break
		}
		left /= d
	}
	if left != 1 {
		return fmt.Errorf("shape %v does not fill a list of %d", shape, t.ListSize)
	}
	return nil
}

func parseTensor(text string) (*tensor, error) {
	if len(text) > maxExtensionJSON {
		return nil, fmt.Errorf("parameters of %d bytes", len(text))
	}
	p, err := jsontext.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the parameters are not JSON: %w", err)
	}
	t := tensor{}
	for key, value := range p.Members() {
		switch key {
		case "shape":
			t.Shape, err = parseList(key, value, integerOf, "an integer")
		case "permutation":
			t.Permutation, err = parseList(key, value, integerOf, "an integer")
		case "dim_names":
			t.DimNames, err = parseList(key, value, jsontext.Value.Text, "a string")
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

// parseList reads a list of elements that parse understands; null is not a list.
func parseList[T any](key string, v jsontext.Value, parse func(jsontext.Value) (T, bool), kind string) ([]T, error) {
	if v.Kind() == jsontext.Null {
		return nil, nil
	}
	if v.Kind() != jsontext.List {
		return nil, fmt.Errorf("the parameter %q is not a list", key)
	}
	all := []T{}
	for e := range v.Elements() {
		element, ok := parse(e)
		if !ok {
			return nil, fmt.Errorf("the parameter %q holds %.20s, which is not %s", key, e, kind)
		}
		all = append(all, element)
	}
	return all, nil
}

func integerOf(v jsontext.Value) (int, bool) {
	n, ok := v.Int()
	return int(n), ok
}

func isPermutation(p []int, n int) bool {
	for i, d := range slices.Sorted(slices.Values(p)) {
		if d != i {
			return false
		}
	}
	return len(p) == n
}

// arrayTypes begins the names of Hugging Face's types Array2D to Array5D.
const arrayTypes = "datasets.features.features.Array"

// arrayXD returns the shape that a field of one of Hugging Face's types Array2D
// to Array5D has in its parameters, [[2, 3], "float32"]. Unknown sizes are -1.
func arrayXD(f *arrowmeta.Field) []int {
	name, text := f.Extension()
	if !strings.HasPrefix(name, arrayTypes) || len(text) > maxExtensionJSON {
		return nil
	}
	p, err := jsontext.Parse([]byte(text))
	if err != nil {
		return nil
	}
	elements := slices.Collect(p.Elements())
	if len(elements) != 2 {
		return nil
	}
	return sizes(elements[0])
}

// sizes reads a declared shape, with -1 for null. It returns nil for a shape
// that no row can have.
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

// size reads a declared size, with -1 for null.
func size(declared jsontext.Value) (int, bool) {
	if declared.Kind() == jsontext.Null {
		return -1, true
	}
	n, ok := declared.Int()
	return int(n), ok && n >= 0 && n <= math.MaxInt32
}
