package picture_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/tests/documents"
)

// TestText draws the layouts of testdata/text. A command has the arguments
// width, array and dims=(down,across). Its input is a document.
func TestText(t *testing.T) {
	datadriven.Walk(t, "testdata/text", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return picture.Text(documents.Layout(t, d.Input), pictureOptions(t, d))
		})
	})
}

func pictureOptions(t *testing.T, d *datadriven.TestData) picture.Options {
	var o picture.Options
	d.MaybeScanArgs(t, "width", &o.Width)
	d.MaybeScanArgs(t, "array", &o.Array)
	if d.HasArg("dims") {
		o.Dims = make([]int, 2)
		d.ScanArgs(t, "dims", &o.Dims[0], &o.Dims[1])
	}
	return o
}

func TestDims(t *testing.T) {
	l := documents.Layout(t, `{"meshfeed": 1, "mesh": {"axes": [["data", 2]]}, "batch": {"size": 2}, "arrays": {
		"cube": {"shape": ["B", 3, 4], "dtype": "int32"}, "list": {"shape": ["B"], "dtype": "int32"}}}`)
	for _, c := range []struct {
		array string
		dims  []int
		rank  int
		ok    bool
	}{
		{"", []int{0, 2}, 3, true}, // of the cube; the list does not have them
		{"cube", []int{2, 0}, 3, true},
		{"cube", []int{1, 1}, 3, false},
		{"cube", []int{-1, 1}, 3, false},
		{"cube", []int{1, 3}, 3, false},
		{"cube", []int{0, 1, 2}, 3, false},
		{"cube", nil, 3, false},
		{"list", []int{0, 1}, 1, false},
		{"absent", []int{0, 1}, 0, false},
	} {
		rank, ok := picture.Dims(l, picture.Options{Array: c.array, Dims: c.dims})
		if rank != c.rank || ok != c.ok {
			t.Errorf("array %q, dims %v: expected %d and %t, got %d and %t", c.array, c.dims, c.rank, c.ok, rank, ok)
		}
	}
}
