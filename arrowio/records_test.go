package arrowio_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	arrow18 "github.com/apache/arrow-go/v18/arrow"
	ipc18 "github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio/records"
	"github.com/meshfeed/meshfeed/arrowio/records18"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestRecords runs the suite on record batches in memory, whole and as slices
// with offsets, of both releases of Arrow's library, and compares each row with
// what v17 reads. It is in this package because the reference is.
func TestRecords(t *testing.T) {
	for _, sizes := range [][]int{{40}, {7, 0, 1, 64, 13, 0}, {0}, {}} {
		for _, cut := range []int64{0, 1, 8} {
			if random.Race && cut != 1 {
				continue
			}
			path := temp(t, "x.arrow")
			batches := save(t, path, true, everything, sizes, 5)
			for i, r := range batches {
				batches[i] = r.NewSlice(min(cut, r.NumRows()), r.NumRows())
			}
			t.Run(fmt.Sprint(sizes, cut), func(t *testing.T) {
				runRecords(t, batches, func() (source.Source, error) {
					return records.New(everything, batches, records.Options{Shapes: shapes})
				})
			})
			if cut != 1 {
				continue // what the releases share has been seen
			}
			schema, of18 := read18(t, path, cut)
			t.Run(fmt.Sprint(sizes, cut, " v18"), func(t *testing.T) {
				runRecords(t, batches, func() (source.Source, error) {
					return records18.New(schema, of18, records18.Options{Shapes: shapes})
				})
			})
		}
	}
}

func runRecords(t *testing.T, batches []arrow.Record, make func() (source.Source, error)) {
	open := func(t *testing.T) source.Source {
		ds, err := make()
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds := open(t)
	defer ds.Close()
	if n := len(ds.Schema().Fixed()); n != len(everything.Fields())-1 {
		t.Fatalf("%d fields: %+v", n, ds.Schema())
	}
	sourcetest.Suite{Open: open, Row: reference(ds, batches)}.Run(t)
}

// read18 reads a stream with release 18 of the library, and leaves out the first
// rows of every batch.
func read18(t *testing.T, path string, cut int64) (*arrow18.Schema, []arrow18.RecordBatch) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc18.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var batches []arrow18.RecordBatch
	for r.Next() {
		b := r.RecordBatch()
		batches = append(batches, b.NewSlice(min(cut, b.NumRows()), b.NumRows()))
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.Schema(), batches
}
