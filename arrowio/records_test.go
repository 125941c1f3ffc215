package arrowio_test

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/records"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
)

// TestRecords runs the suite on record batches in memory, whole and as slices
// with offsets, and compares each row with what Arrow's own library reads. It
// stands here because the reference does.
func TestRecords(t *testing.T) {
	for _, sizes := range [][]int{{40}, {7, 0, 1, 64, 13, 0}, {0}, {}} {
		for _, cut := range []int64{0, 1, 8} {
			t.Run(fmt.Sprint(sizes, cut), func(t *testing.T) {
				batches := save(t, temp(t, "x.arrow"), true, everything, sizes, 5)
				for i, r := range batches {
					batches[i] = r.NewSlice(min(cut, r.NumRows()), r.NumRows())
				}
				open := func(t *testing.T) source.Source {
					ds, err := records.New(everything, batches, records.Options{Shapes: shapes})
					if err != nil {
						t.Fatal(err)
					}
					return ds
				}
				ds := open(t)
				defer ds.Close()
				if n := len(ds.Schema().Fields); n != len(everything.Fields())-1 {
					t.Fatalf("%d fields: %+v", n, ds.Schema())
				}
				sourcetest.Suite{Open: open, Row: reference(ds, batches)}.Run(t)
			})
		}
	}
}
