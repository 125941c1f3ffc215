package arrowio_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
)

// TestTimes: a gather counts its waits for storage and for decompression. If decoded
// buffers are in the cache, it waits for neither.
func TestTimes(t *testing.T) {
	values := "[" + strings.Repeat("1,", 99_999) + "1]"
	folder(t, map[string][]byte{
		"packed.arrow": column(t, "x", arrow.PrimitiveTypes.Int64, values, ipc.WithZstd()),
		"plain.arrow":  column(t, "x", arrow.PrimitiveTypes.Int64, values),
	})
	for path, decodes := range map[string]bool{"packed.arrow": true, "plain.arrow": false} {
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: "read"})
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		g, err := ds.Gatherer([]source.Part{{Field: 0, Boxes: [][][2]int{{}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for again := range 2 {
			var times source.Times
			jobs := []source.Job{{Part: 0, Rows: [2]int{0, 2}, Dst: make([]byte, 16)}}
			if err := g.Gather(source.WithTimes(t.Context(), &times), source.Draw{}, []int64{0, 50_000}, jobs); err != nil {
				t.Fatal(err)
			}
			w := times.Take()
			cached := decodes && again == 1
			if (w.Storage > 0) == cached || (w.Decode > 0) != (decodes && !cached) {
				t.Errorf("%s, gather %d: storage %v, decode %v", path, again, w.Storage, w.Decode)
			}
			if w := times.Take(); w.All() != 0 {
				t.Errorf("%+v after Take", w)
			}
		}
	}
	source.TimesOf(t.Context()).AddStorage(1) // without Times nothing happens
}
