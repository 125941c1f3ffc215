package arrowio_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestFiles runs the tests of sources on every kind of field in files and streams.
// It compares each row with what Arrow's own library reads.
func TestFiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		streams []bool // by file
		sizes   []int
		options []ipc.Option
	}{
		{"file", []bool{false}, []int{40}, nil},
		{"stream", []bool{true}, []int{40}, nil},
		{"batches", []bool{false}, []int{7, 0, 1, 64, 13, 0}, nil},
		{"mixed", []bool{false, true, false}, []int{5, 0, 9}, nil},
		{"empty", []bool{false, true}, []int{0}, nil},
		{"lz4", []bool{false, true}, []int{30, 0, 11}, []ipc.Option{ipc.WithLZ4()}},
		{"zstd", []bool{true, false}, []int{30, 11}, []ipc.Option{ipc.WithZstd()}},
	} {
		for i, io := range []string{"map", "read"} {
			if random.Race && i != len(c.sizes)%2 {
				continue // one of the two is enough for the race detector
			}
			t.Run(c.name+"/"+io, func(t *testing.T) {
				var paths []string
				var records []arrow.Record
				for i, stream := range c.streams {
					path := temp(t, "x.arrow")
					save(t, path, stream, everything, c.sizes, uint64(i), c.options...)
					records = append(records, readBack(t, path)...)
					paths = append(paths, path)
				}
				open := func(t *testing.T) source.Source {
					ds, err := arrowio.OpenFiles(t.Context(), paths, arrowio.Options{IO: io, Shapes: shapes})
					if err != nil {
						t.Fatal(err)
					}
					return ds
				}
				ds := open(t).(*arrowio.Dataset)
				defer ds.Close()
				if n := len(ds.Schema().Fixed()); n != len(everything.Fields())-1 {
					t.Fatalf("%d fields: %+v", n, ds.Schema())
				}
				sourcetest.Suite{Open: open, Row: reference(ds, records)}.Run(t)
			})
		}
	}
}

// TestPartlyCompressed reads a stream. Its later record batches are compressed.
func TestPartlyCompressed(t *testing.T) {
	var joined []byte
	var records []arrow.Record
	for i, options := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}, nil} {
		path := temp(t, "x.arrow")
		save(t, path, true, everything, []int{9, 20}, uint64(i), options...)
		records = append(records, readBack(t, path)...)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		meta, err := arrowmeta.Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		from := min(meta.Dictionaries[0].Offset, meta.Batches[0].Offset)
		if i == 0 {
			from = 0
		}
		joined = append(joined, data[from:meta.Batches[1].End()]...)
	}
	path := temp(t, "joined.arrow")
	if err := os.WriteFile(path, append(joined, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T) source.Source {
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{Shapes: shapes})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds := open(t).(*arrowio.Dataset)
	defer ds.Close()
	if how := ds.Files()[0].Compression; how != "lz4" {
		t.Errorf("compression %q, but the first compressed batch has lz4", how)
	}
	sourcetest.Suite{Open: open, Row: reference(ds, records)}.Run(t)
}

// shapes are the shapes of the fields that are lists. They are given, because there
// may be no record to take them from.
var shapes = map[string][]int{"tokens": {6}, "large": {3, 2}, "nested": {2, 3}, "null tokens": {6}, "null nested": {3, 4}, "null codes": {2}, "bfloat16 list": {3}}

// TestSlices runs the suite on Go slices.
func TestSlices(t *testing.T) {
	open := func(t *testing.T) source.Source {
		ds, err := arrowio.FromSlices(
			arrowio.Slice("image", counted[float32](24), 2, 3),
			arrowio.Slice("label", counted[int64](4)),
			arrowio.Slice("flag", []bool{true, false, false, true}),
			arrowio.Slice("half", counted[uint16](8), 2).As(dtype.Float16),
		)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	sourcetest.Run(t, open)
	t.Run("Slice", func(t *testing.T) {
		sourcetest.Run(t, func(t *testing.T) source.Source {
			part, err := view.Slice(open(t), 1, 4)
			if err != nil {
				t.Fatal(err)
			}
			return part
		})
	})
}

// TestFoldedShapes declares more dimensions than flat lists are stored in.
func TestFoldedShapes(t *testing.T) {
	path := temp(t, "x.arrow")
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "tokens", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
		{Name: "null image", Type: arrow.FixedSizeListOf(12, arrow.PrimitiveTypes.Int16), Nullable: true},
	}, nil)
	save(t, path, false, schema, []int{9, 20}, 3)
	records := readBack(t, path)
	open := func(t *testing.T) source.Source {
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{Shapes: map[string][]int{"tokens": {3, 2}, "null image": {2, 2, 3}}})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds := open(t).(*arrowio.Dataset)
	defer ds.Close()
	if got := fmt.Sprint(ds.Schema().Fields[0].Shape, ds.Schema().Fields[1].Shape); got != "[3 2] [2 2 3]" {
		t.Errorf("shapes %s", got)
	}
	sourcetest.Suite{Open: open, Row: reference(ds, records)}.Run(t)
	_, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{Shapes: map[string][]int{"null image": {5, 2}}})
	if want := `arrowio: field "null image" has rows of 12 values, but shape [5 2] needs 10; leave its shape out, or correct it`; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func counted[T int64 | float32 | uint16](n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = T(i)
	}
	return list
}
