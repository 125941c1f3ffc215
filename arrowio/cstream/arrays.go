package cstream

import (
	"context"
	"slices"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Array is a field in memory of the caller's.
type Array struct {
	Name string
	Type dtype.Type

	// Data is where element [0, 0, ...] stands. Element [i, j, ...] stands
	// i*Strides[0] + j*Strides[1] + ... bytes further.
	Data unsafe.Pointer

	Shape   []int // records first
	Strides []int // of any sign, or 0; nil for C order
}

// MaxArrays is how many arrays FromArrays accepts.
const MaxArrays = 1 << 16

// Limits of each of them.
const (
	maxRank    = 32
	maxRecords = 1 << 40
)

// arrays is a source over arrays.
type arrays struct {
	gate    gate
	schema  source.Schema
	columns []column
	records int64

	mu     sync.Mutex
	hashed *source.Fingerprint
}

// FromArrays makes a source of arrays that have the same number of records. The
// memory must not move or change until release is called; the descriptions are
// copied. If FromArrays fails, release is left to the caller.
func FromArrays(list []Array, release func()) (source.Source, error) {
	if len(list) == 0 {
		return nil, refuse("a dataset needs at least one array")
	}
	if len(list) > MaxArrays {
		return nil, refuse("%d arrays are more than %d", len(list), MaxArrays)
	}
	s := &arrays{}
	for i := range list {
		if err := s.add(&list[i]); err != nil {
			return nil, err
		}
	}
	s.gate.release = release
	return s, nil
}

func refuse(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "arrays", format, args...)
}

// add checks an array and appends its field and column.
func (s *arrays) add(a *Array) error {
	if err := a.check(); err != nil {
		return err
	}
	if _, _, twice := s.schema.Field(a.Name); twice {
		return refuse("two arrays are named %q", a.Name)
	}
	if n := int64(a.Shape[0]); len(s.columns) == 0 {
		s.records = n
	} else if n != s.records {
		return refuse("array %q has %d records, but %q has %d", a.Name, n, s.schema.Fields[0].Name, s.records).
			WithHint("all arrays of a dataset have the same first dimension")
	}
	s.schema.Fields = append(s.schema.Fields, source.Field{Name: a.Name, Type: a.Type, Shape: slices.Clone(a.Shape[1:])})
	s.columns = append(s.columns, a.column())
	return nil
}

func (a *Array) check() error {
	if a.Name == "" || !utf8.ValidString(a.Name) {
		return refuse("%q is not a name for an array: it must be UTF-8 and not empty", a.Name)
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

// checkShape refuses sizes whose product is beyond all memory.
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

// Schema implements source.Source.
func (s *arrays) Schema() source.Schema { return s.schema }

// Len implements source.Source.
func (s *arrays) Len() int64 { return s.records }

// Close implements source.Source.
func (s *arrays) Close() error {
	s.gate.close()
	return nil
}

// Coverage implements source.Covered.
func (s *arrays) Coverage() (hashed, of int64) { return table.Coverage(s) }

// Fingerprint implements source.Source: see [table.Fingerprint].
func (s *arrays) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashed == nil {
		f, err := table.Fingerprint(ctx, s)
		if err != nil {
			return f, err
		}
		s.hashed = &f
	}
	return *s.hashed, nil
}
