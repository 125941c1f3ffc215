package layout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestText draws layouts. Every command is "text", with the arguments width,
// array and dims=(down,across); its input is a document.
func TestText(t *testing.T) {
	datadriven.Walk(t, "testdata/text", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return mustNew(t, d.Input).Text(pictureOptions(t, d))
		})
	})
}

func pictureOptions(t *testing.T, d *datadriven.TestData) PictureOptions {
	var o PictureOptions
	d.MaybeScanArgs(t, "width", &o.Width)
	d.MaybeScanArgs(t, "array", &o.Array)
	if d.HasArg("dims") {
		o.Dims = make([]int, 2)
		d.ScanArgs(t, "dims", &o.Dims[0], &o.Dims[1])
	}
	return o
}

// TestProblems lists the problems of documents, with their facts, and the
// error that New's caller gets.
func TestProblems(t *testing.T) {
	seen := map[Code]bool{}
	datadriven.Walk(t, "testdata/problems", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l := mustNew(t, d.Input)
			var out strings.Builder
			for _, p := range l.Problems() {
				seen[p.Code] = true
				fmt.Fprintln(&out, p)
				for _, f := range p.Facts {
					fmt.Fprintf(&out, "  %s=%d\n", f.Name, f.Value)
				}
			}
			if err := l.Err(); err != nil {
				fmt.Fprintln(&out, err)
			}
			if out.Len() == 0 {
				return "none\n"
			}
			return out.String()
		})
	})
	for _, code := range Codes() {
		if !seen[code] {
			t.Errorf("no document has the problem %s", code)
		}
	}
}

// TestPictureDims says which dimensions a picture can show.
func TestPictureDims(t *testing.T) {
	l := mustNew(t, `{"meshfeed": 1, "mesh": {"axes": [["data", 2]]}, "batch": {"size": 2}, "arrays": {
		"cube": {"shape": ["B", 3, 4], "dtype": "int32"}, "list": {"shape": ["B"], "dtype": "int32"}}}`)
	for _, c := range []struct {
		array string
		dims  []int
		rank  int
		ok    bool
	}{
		{"", []int{0, 2}, 3, true}, // of the cube; the list is drawn without them
		{"cube", []int{2, 0}, 3, true},
		{"cube", []int{1, 1}, 3, false},
		{"cube", []int{-1, 1}, 3, false},
		{"cube", []int{1, 3}, 3, false},
		{"cube", []int{0, 1, 2}, 3, false},
		{"cube", nil, 3, false},
		{"list", []int{0, 1}, 1, false},
		{"absent", []int{0, 1}, 0, false},
	} {
		rank, ok := l.PictureDims(PictureOptions{Array: c.array, Dims: c.dims})
		if rank != c.rank || ok != c.ok {
			t.Errorf("array %q, dims %v: expected %d and %t, got %d and %t", c.array, c.dims, c.rank, c.ok, rank, ok)
		}
	}
}
