package table

import (
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// TestDictionaryOfDictionaries is refused with a reason.
func TestDictionaryOfDictionaries(t *testing.T) {
	index := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8}
	inner := arrowmeta.Field{Type: index, Dictionary: &arrowmeta.Dictionary{ID: 1, Index: index}}
	outer := arrowmeta.Field{Name: "x", Dictionary: &arrowmeta.Dictionary{Index: index},
		Type: arrowmeta.Type{Kind: arrowmeta.FixedSizeList, ListSize: 2, Children: []arrowmeta.Field{inner}}}
	want := "its dictionary holds lists of another dictionary's values; store plain values"
	f, reasons, err := Fields(&arrowmeta.Schema{Fields: []arrowmeta.Field{outer}}, nil)
	if err != nil || f[0] != nil || reasons[0] != want {
		t.Errorf("got %+v, %q, %v, want %q", f[0], reasons, err, want)
	}
}

// TestDictionaryInMemory cuts a dictionary of pairs out of its arrays: all of
// its values have to lie within them.
func TestDictionaryInMemory(t *testing.T) {
	values := make([]int32, 20)
	buffer := func(bytes int) Buffer { return Buffer{unsafe.Pointer(unsafe.SliceData(values)), int64(bytes)} }
	pairs := &Field{Type: dtype.Int32, Shape: []int{2}, Nodes: []Node{{Kind: Fixed, Size: 2}, {Kind: Values, Size: 4}}}
	field := &Field{Name: "x", Type: dtype.Int32, Shape: []int{2}, Nodes: []Node{{Kind: Coded, Width: 1}}, Values: pairs}
	for _, c := range []struct {
		offset, length, childOffset, childLength int64 // of the dictionary, and of the values in its lists
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
		dictionary := &Array{Length: c.length, Offset: c.offset, Buffers: []Buffer{{}}, Child: func() *Array { return child }}
		indices := &Array{Length: 4, Buffers: []Buffer{{}, buffer(4)}, Dictionary: func() *Array { return dictionary }}
		b := builder{field: field, column: &Column{Planes: make([]Plane, 1)}}
		err := b.batch(indices, 0, 4)
		if (err == nil) != c.fine {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		first := int(uintptr(unsafe.Pointer(unsafe.SliceData(b.dictionary.Values)))-uintptr(unsafe.Pointer(&values[0]))) / 4
		if want := int(2*c.offset + c.childOffset); first != want || len(b.dictionary.Values) != int(8*c.length) {
			t.Errorf("%+v: %d bytes from value %d on, not %d", c, len(b.dictionary.Values), first, want)
		}
	}
}
