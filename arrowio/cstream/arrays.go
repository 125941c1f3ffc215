package cstream

import (
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Array is a field in the caller's memory.
type Array struct {
	Name string
	Type dtype.Type

	// Data is the address of element [0, 0, ...]. The address of element
	// [i, j, ...] is Data + i*Strides[0] + j*Strides[1] + ... bytes.
	Data unsafe.Pointer

	Shape   []int // the first dimension counts the records
	Strides []int // in bytes, of any sign, or 0; nil for C order

	Logical string // the type that the values stand for, as in source.Field; "" for plain numbers
}

// MaxArrays is the largest number of arrays that FromArrays accepts.
const MaxArrays = 1 << 16

// The limits of each array.
const (
	maxRank    = 32
	maxRecords = 1 << 40
)

// FromArrays makes a source of arrays that have the same number of records. The
// memory must not move or change until release is called; the descriptions are
// copied. If FromArrays fails, the caller still owns the memory.
func FromArrays(list []Array, release func()) (source.Source, error) {
	if len(list) == 0 {
		return nil, refuse("a dataset needs at least one array")
	}
	if len(list) > MaxArrays {
		return nil, refuse("%d arrays are more than %d", len(list), MaxArrays)
	}
	t := &table.Table{Columns: make([]*buffers.Column, len(list)), Calls: source.NewCalls("arrays", "dataset", nil)}
	for i := range list {
		a := &list[i]
		if err := a.check(t, list); err != nil {
			return nil, err
		}
		f := arrowtype.Plain(a.Name, a.Type, a.Shape[1:])
		f.Logical = a.Logical
		t.Columns[i] = &buffers.Column{Planes: make([]buffers.Plane, len(f.Levels))}
		t.Columns[i].Planes[len(f.Levels)-1].Data = []int64{int64(uintptr(a.Data))}
		t.Strides = append(t.Strides, slices.Clone(a.Strides))
		t.Add(f, buffers.Nulls{})
	}
	t.Index = index.New([]int64{int64(list[0].Shape[0])})
	return newBorrowed(t, release), nil
}

func refuse(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "arrays", format, args...)
}

// check rejects an invalid array. Its name must differ from the arrays before it,
// and its number of records must be equal.
func (a *Array) check(t *table.Table, list []Array) error {
	if err := a.checkAlone(); err != nil {
		return err
	}
	if _, _, twice := t.Schema.Field(a.Name); twice {
		return refuse("two arrays are named %q", a.Name)
	}
	if a.Shape[0] != list[0].Shape[0] {
		return refuse("array %q has %d records, but %q has %d", a.Name, a.Shape[0], list[0].Name, list[0].Shape[0]).
			WithHint("all arrays of a dataset have the same first dimension")
	}
	return nil
}

func (a *Array) checkAlone() error {
	if a.Name == "" || !utf8.ValidString(a.Name) {
		return refuse("%q is not a name for an array: it must be UTF-8 and not empty", a.Name)
	}
	if !utf8.ValidString(a.Logical) {
		return refuse("the logical type %q of array %q is not UTF-8", a.Logical, a.Name)
	}
	if !a.Type.Valid() {
		return refuse("array %q has an element type that is not supported", a.Name)
	}
	if len(a.Shape) == 0 {
		return refuse("array %q has no dimensions: the first one counts the records", a.Name)
	}
	if len(a.Shape) > maxRank {
		return refuse("array %q has %d dimensions, more than %d", a.Name, len(a.Shape), maxRank)
	}
	if a.Strides != nil && len(a.Strides) != len(a.Shape) {
		return refuse("array %q has %d dimensions, but %d strides", a.Name, len(a.Shape), len(a.Strides))
	}
	return a.checkShape()
}

// checkShape rejects negative sizes, more than maxRecords records, and more than
// 2^58 elements, because their bytes may not fit in an int. It also rejects a NULL
// address of an array that has elements.
func (a *Array) checkShape() error {
	elements, empty := 1, false
	for _, n := range a.Shape {
		switch {
		case n < 0:
			return refuse("array %q has the shape %v", a.Name, a.Shape)
		case n == 0:
			empty = true
		case elements > 1<<58/n:
			return refuse("array %q has the shape %v, which is more than memory can hold", a.Name, a.Shape)
		default:
			elements *= n
		}
	}
	if a.Shape[0] > maxRecords {
		return refuse("array %q has %d records, more than 2^40", a.Name, a.Shape[0])
	}
	if a.Data == nil && !empty {
		return refuse("array %q of shape %v has no memory: data is NULL", a.Name, a.Shape)
	}
	return nil
}
