package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Kind is where the values of an array come from.
type Kind uint8

// The kinds of arrays.
const (
	Data   Kind = iota // a field of the dataset
	Mask               // true in real rows, false in padding
	Key                // RecordKey of the row's record; zero in padding
	Record             // the record number, low and high half; all ones in padding
	Static             // not read: the array only takes memory on devices
)

// String names the kind: "data", "mask", "key", "record" or "static".
func (k Kind) String() string {
	return [...]string{"data", "mask", "key", "record", "static"}[k]
}

// Array is one array of the batch.
type Array struct {
	Name      string
	Field     string                  // name in the dataset; "" unless Kind is Data
	Columns   [][2]int                // [start, stop) ranges of the row's first dimension; nil for the whole row
	Shape     []int                   // global: the batch dimensions, then the row's dimensions
	BatchDims int                     // number of batch dimensions; 0 for Static
	Type      dtype.Type              // as delivered
	Sharding  *sharding.NamedSharding // sharding that the spec describes; nil if a problem of severity "error" forbids it
	Delivered *sharding.NamedSharding // as the loader delivers the array: Sharding itself, or a split over all axes with LoadReshard; nil if that is not possible
	Kind      Kind
}

// RowShape returns the shape of one row.
func (a Array) RowShape() []int { return a.Shape[a.BatchDims:] }

// Resharded reports whether the loader delivers the array with another partition
// than its spec.
func (a Array) Resharded() bool { return a.Delivered != nil && a.Delivered != a.Sharding }

// generated reports whether the array is the mask or an extra. The loader computes
// it, and the document does not list it under arrays.
func (a Array) generated() bool { return a.Kind != Data && a.Kind != Static }

// addArrays lists the arrays and reports the problems of their specs.
func (l *Layout) addArrays() {
	for i := range l.doc.Arrays {
		s := &l.doc.Arrays[i]
		l.add(l.wanted(s), s.Spec, arrayPath(s.Name))
	}
	b := l.doc.Batch
	if b == nil {
		return
	}
	shared := l.doc.SharedSpec()
	if l.Remainder() == Pad {
		spec, path := shared, "/batch"
		if b.MaskSpec != nil {
			spec, path = b.MaskSpec, "/batch/mask_spec"
		}
		l.add(Array{Name: b.mask(), Shape: slices.Clone(b.Size), BatchDims: len(b.Size), Type: dtype.Bool, Kind: Mask}, spec, path)
	}
	for _, name := range b.Extras {
		l.add(l.extra(name), append(shared.Clone(), nil), "/batch/extras")
	}
}

// wanted returns the array that an entry of the document describes.
func (l *Layout) wanted(s *ArraySpec) Array {
	a := Array{Name: s.Name, Field: s.field(), Columns: s.Columns, Type: s.Type, Kind: Static}
	if !s.Static {
		a.Kind = Data
		a.BatchDims = len(l.doc.Batch.Size)
		a.Shape = append(a.Shape, l.doc.Batch.Size...)
	}
	a.Shape = append(a.Shape, s.RowShape...)
	return a
}

// extra returns the array of an extra: "key" or "record".
func (l *Layout) extra(name string) Array {
	size := l.doc.Batch.Size
	a := Array{Name: name, Shape: append(slices.Clone(size), 2), BatchDims: len(size), Type: dtype.Uint32, Kind: Key}
	if name == ExtraRecord {
		a.Kind = Record
	}
	return a
}

// add appends an array. It has no sharding if the spec does not fit.
func (l *Layout) add(a Array, spec sharding.PartitionSpec, path string) {
	s, t, ok := l.checkSpec(a, spec, path)
	if ok {
		a.Sharding = s
	}
	l.arrays = append(l.arrays, a)
	l.tilings = append(l.tilings, t)
}

// Grouped groups the numbers of the arrays by their keys, in order. It leaves out
// an array if key returns false for it.
func (l *Layout) Grouped(key func(i int) (k string, ok bool)) [][]int {
	var groups [][]int
	number := map[string]int{}
	for i := range l.arrays {
		k, ok := key(i)
		if !ok {
			continue
		}
		n, known := number[k]
		if !known {
			n = len(groups)
			number[k] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}
