package table

import (
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// describe describes a column that can be an array, with lists of two elements.
func describe(t *testing.T, f arrowmeta.Field) *arrowtype.Field {
	t.Helper()
	field, reason := arrowtype.Of(&f)
	if reason != "" {
		t.Fatal(reason)
	}
	if field.Open() {
		if err := field.Resolve([]int{2}); err != nil {
			t.Fatal(err)
		}
	}
	return field
}

// listOf returns the type of lists of n elements, or of any number for -1.
func listOf(n int, elements arrowmeta.Type) arrowmeta.Type {
	t := arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: n, Children: []arrowmeta.Field{{Type: elements}}}
	if n < 0 {
		t.Kind = arrowmeta.List
	}
	return t
}

// TestDictionaryInMemory takes a dictionary of pairs from arrays with offsets. All
// values have to lie within the arrays.
func TestDictionaryInMemory(t *testing.T) {
	values := make([]int32, 20)
	buffer := func(bytes int) Buffer { return Buffer{unsafe.Pointer(unsafe.SliceData(values)), int64(bytes)} }
	field := describe(t, arrowmeta.Field{Name: "x", Type: listOf(2, number), Dictionary: &arrowmeta.Dictionary{Index: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8}}})
	for _, c := range []struct {
		offset, length, childOffset, childLength int64 // the dictionary, and the values in its lists
		fine                                     bool
	}{
		{0, 10, 0, 20, true},
		{0, 9, 2, 18, true},
		{3, 7, 0, 20, true},
		{2, 6, 4, 16, true},
		{0, 10, 0, 19, false},
		{3, 7, 0, 19, false},
		{3, 7, 0, 14, false}, // as many values as its pairs have, but they begin further back
		{2, 7, 4, 16, false},
	} {
		child := &Array{Length: c.childLength, Offset: c.childOffset, Buffers: []Buffer{{}, buffer(80)}}
		dictionary := &Array{Length: c.length, Offset: c.offset, Buffers: []Buffer{{}}, Child: func(int) *Array { return child }}
		indices := &Array{Length: 4, Buffers: []Buffer{{}, buffer(4)}, Dictionary: func() *Array { return dictionary }}
		b := builder{field: field, column: &buffers.Column{Planes: make([]buffers.Plane, 1)}}
		err := b.batch(indices, 0, 4)
		if (err == nil) != c.fine {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		found := b.column.Dictionaries[0].Values
		first := int(uintptr(unsafe.Pointer(unsafe.SliceData(found)))-uintptr(unsafe.Pointer(&values[0]))) / 4
		if want := int(2*c.offset + c.childOffset); first != want || len(found) != int(8*c.length) {
			t.Errorf("%+v: %d bytes from value %d on, not %d", c, len(found), first, want)
		}
	}
}
