package layout

import (
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
