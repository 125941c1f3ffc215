package picture_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/meshfeed/meshfeed/core/layout/picture"
	"github.com/meshfeed/meshfeed/tests/documents"
)

// TestText draws the layouts of testdata/text. The input of a command is a layout
// document. Its arguments are width, array and dims=(down,across), all optional.
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

func TestOptionsAreChecked(t *testing.T) {
	l := documents.Layout(t, `{"meshfeed": 1, "mesh": {"axes": [["data", 2]]}, "batch": {"size": 2}, "arrays": {
		"cube": {"shape": ["B", 3, 4], "dtype": "int32"}, "list": {"shape": ["B"], "dtype": "int32"}}}`)
	const expected = "layout: expected dims to be two different dimensions from 0 to 2, but found "
	for _, c := range []struct {
		array string
		dims  []int
		want  string
	}{
		{"", nil, ""},
		{"", []int{0, 2}, ""}, // dimensions of the cube; the list has only one
		{"cube", nil, ""},
		{"cube", []int{2, 0}, ""},
		{"list", nil, ""},
		{"cube", []int{}, expected + "[]"},
		{"cube", []int{1, 1}, expected + "[1 1]"},
		{"cube", []int{-1, 1}, expected + "[-1 1]"},
		{"", []int{1, 3}, expected + "[1 3]"},
		{"cube", []int{0, 1, 2}, expected + "[0 1 2]"},
		{"list", []int{0, 1}, "layout: dims are for arrays of two dimensions or more; leave them out"},
		{"absent", []int{0, 1}, `layout: the layout has no array "absent"; its arrays: "cube", "list"`},
	} {
		got := ""
		if err := (picture.Options{Array: c.array, Dims: c.dims}).Check(l); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("array %q, dims %v:\ngot  %s\nwant %s", c.array, c.dims, got, c.want)
		}
	}
}
