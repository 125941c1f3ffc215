package records18_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/records18"
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// loading loads all fields of a source, or the arrays of a document, and counts the
// memory of batches.
func loading(t *testing.T, src source.Source, text string) (*loader.Loader, *layout.Layout, *batch.Heap) {
	t.Helper()
	doc, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Arrays) == 0 {
		for _, f := range src.Schema().Fields {
			doc.Arrays = append(doc.Arrays, layout.ArraySpec{Name: f.Name, RowShape: f.Shape, Type: f.Type})
		}
	}
	plan, err := layout.New(doc)
	if err != nil {
		t.Fatal(err)
	}
	heap := batch.NewHeap(0)
	l, err := loader.New(src, loader.Options{Layout: plan, Allocator: heap, Epochs: 1, Prefetch: -1})
	if err != nil {
		t.Fatal(err)
	}
	return l, plan, heap
}

const padded = `{"meshfeed": 1, "mesh": {"axes": [["data", 1]]}, "batch": {"size": 3, "remainder": "pad"}, "arrays": {}}`

// everyType has five rows of every element type. Row i holds the numbers from i on.
func everyType(t *testing.T) source.Source {
	t.Helper()
	src, err := arrowio.FromSlices(
		arrowio.Slice("bool", []bool{false, true, true, false, true}),
		arrowio.Slice("int8", []int8{0, 1, 2, 3, 4}), arrowio.Slice("int16", []int16{0, 1, 2, 3, 4}),
		arrowio.Slice("int32", []int32{0, 1, 2, 3, 4}), arrowio.Slice("int64", []int64{0, 1, 2, 3, 4}),
		arrowio.Slice("uint8", []uint8{0, 1, 2, 3, 4}), arrowio.Slice("uint16", []uint16{0, 1, 2, 3, 4}),
		arrowio.Slice("uint32", []uint32{0, 1, 2, 3, 4}), arrowio.Slice("uint64", []uint64{0, 1, 2, 3, 4}),
		arrowio.Slice("float16", []uint16{0, 0x3c00, 0x4000, 0x4200, 0x4400}).As(dtype.Float16),
		arrowio.Slice("bfloat16", []uint16{0, 0x3f80, 0x4000, 0x4040, 0x4080}).As(dtype.BFloat16),
		arrowio.Slice("float64", []float64{0, 1, 2, 3, 4}),
		arrowio.Slice("complex64", []complex64{0, 1, 2i, 3, 4}), arrowio.Slice("complex128", []complex128{0, 1, 2i, 3, 4}),
		arrowio.Slice("matrix", []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, 2, 2),
	)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestFromBatch compares the values of every type, without padding and mask. The memory
// is freed when the record batch and the last array are released.
func TestFromBatch(t *testing.T) {
	src := everyType(t)
	defer src.Close()
	l, plan, heap := loading(t, src, padded)
	defer l.Close()
	var all []arrow.RecordBatch
	for b, err := range l.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := records18.FromBatch(plan, src.Schema(), b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
		b.Release() // does nothing: the record batch has the memory
	}
	if len(all) != 2 || all[0].NumRows() != 3 || all[1].NumRows() != 2 {
		t.Fatal(all)
	}
	var got strings.Builder
	for i := range int(all[0].NumCols()) {
		fmt.Fprintln(&got, all[0].ColumnName(i), all[0].Column(i), all[1].Column(i))
	}
	const want = `bool [false true true] [false true]
int8 [0 1 2] [3 4]
int16 [0 1 2] [3 4]
int32 [0 1 2] [3 4]
int64 [0 1 2] [3 4]
uint8 [0 1 2] [3 4]
uint16 [0 1 2] [3 4]
uint32 [0 1 2] [3 4]
uint64 [0 1 2] [3 4]
float16 [0 1 2] [3 4]
bfloat16 [0 1 2] [3 4]
float64 [0 1 2] [3 4]
complex64 [[0 0] [1 0] [0 2]] [[3 0] [4 0]]
complex128 [[0 0] [1 0] [0 2]] [[3 0] [4 0]]
matrix [[[0 1] [2 3]] [[4 5] [6 7]] [[8 9] [10 11]]] [[[12 13] [14 15]] [[16 17] [18 19]]]
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	kept := all[0].Column(14)
	kept.Retain()
	for _, r := range all {
		r.Release()
	}
	if n, _ := heap.Live(); n != 1 {
		t.Errorf("%d batches live while an array is retained, want 1", n)
	}
	if fmt.Sprint(kept) != "[[[0 1] [2 3]] [[4 5] [6 7]] [[8 9] [10 11]]]" {
		t.Error(kept)
	}
	kept.Release()
	if n, _ := heap.Live(); n != 0 {
		t.Errorf("%d batches live after the last release", n)
	}
}

// TestRoundTrip loads record batches with dates and times, and gets the same ones.
func TestRoundTrip(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "date32", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "date64", Type: arrow.FixedWidthTypes.Date64, Nullable: true},
		{Name: "time32", Type: arrow.FixedWidthTypes.Time32ms, Nullable: true},
		{Name: "time64", Type: arrow.FixedWidthTypes.Time64ns, Nullable: true},
		{Name: "stamp", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Berlin"}, Nullable: true},
		{Name: "local", Type: &arrow.TimestampType{Unit: arrow.Second}, Nullable: true},
		{Name: "span", Type: arrow.FixedWidthTypes.Duration_ns, Nullable: true},
		{Name: "months", Type: arrow.FixedWidthTypes.MonthInterval, Nullable: true},
		{Name: "pair", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16), Nullable: true},
	}, nil)
	rows := `[{"date32":"2020-01-01","date64":"2020-01-02","time32":"01:02:03","time64":"01:02:04","stamp":"2020-01-01 00:00:00Z","local":"2021-01-01 00:00:00","span":"5s","months":{"months":7},"pair":[1,2]},
	          {"date32":"2020-02-01","date64":"2020-03-02","time32":"01:02:05","time64":"01:02:06","stamp":"2022-01-01 00:00:00Z","local":"2023-01-01 00:00:00","span":"6s","months":{"months":8},"pair":[3,4]}]`
	record, _, err := array.RecordFromJSON(pool, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer record.Release()
	src, err := records18.New(schema, []arrow.RecordBatch{record}, records18.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l, plan, _ := loading(t, src, `{"meshfeed": 1, "mesh": {"axes": []}, "batch": {"size": 2}, "arrays": {}}`)
	defer l.Close()
	next, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	back, err := records18.FromBatch(plan, src.Schema(), next)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Release()
	if !array.RecordEqual(record, back) || !back.Schema().Equal(schema) {
		t.Errorf("got  %v\nwant %v", back, record)
	}
}

// TestUnfitBatches: after an error, the batch still has its memory.
func TestUnfitBatches(t *testing.T) {
	src, err := arrowio.FromSlices(arrowio.Slice("x", make([]float32, 32), 4))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, c := range []struct{ text, want string }{
		{`{"meshfeed": 1, "mesh": {"axes": [["data", 2]]}, "batch": {"size": 4}, "arrays": {"x": {"shape": ["B", 4], "dtype": "float32", "spec": ["data"]}}}`,
			`arrowio: array "x" has blocks of shape [2 4], but a record batch needs its [4 4] in one block; load with a layout on a mesh of one device, and give every array the batch dimension`},
		{`{"meshfeed": 1, "mesh": {"axes": []}, "batch": {"size": [2, 2]}, "arrays": {"x": {"shape": ["B0", "B1", 4], "dtype": "float32"}}}`,
			`arrowio: the batch has 2 batch dimensions, but a record batch has one dimension of rows`},
	} {
		l, plan, heap := loading(t, src, c.text)
		b, err := l.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if r, err := records18.FromBatch(plan, src.Schema(), b); r != nil || status.CodeOf(err) != status.Unsupported || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		b.Release()
		if _, err := records18.FromBatch(plan, src.Schema(), b); err == nil {
			t.Error("a released batch became a record batch")
		}
		if n, _ := heap.Live(); n != 0 {
			t.Errorf("%d batches live", n)
		}
		l.Close()
	}
}

// TestOtherLayouts: the layout of another loader is refused, instead of giving its names to
// other columns.
func TestOtherLayouts(t *testing.T) {
	src, err := arrowio.FromSlices(arrowio.Slice("x", []uint8{1, 2}), arrowio.Slice("y", []float32{1, 2}))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l, plan, _ := loading(t, src, padded)
	defer l.Close()
	b, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	for _, c := range []struct{ fields, want string }{
		{"x", `arrowio: block 1 of the batch is float32 [3] of array 1, which the layout does not have; give the layout of the loader that delivered the batch`},
		{"yx", `arrowio: block 0 of the batch is uint8 [3] of array 0, which the layout does not have; give the layout of the loader that delivered the batch`},
	} {
		doc := &layout.Document{Batch: &layout.BatchSpec{Size: []int{3}}}
		for _, name := range strings.Split(c.fields, "") {
			_, f, _ := src.Schema().Field(name)
			doc.Arrays = append(doc.Arrays, layout.ArraySpec{Name: name, Type: f.Type})
		}
		other, err := layout.New(doc)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := records18.FromBatch(other, src.Schema(), b); r != nil || status.CodeOf(err) != status.InvalidArgument || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	for _, try := range []func() error{
		func() error { _, err := records18.FromBatch(nil, src.Schema(), b); return err },
		func() error { _, err := records18.FromBatch(plan, src.Schema(), nil); return err },
	} {
		if err := try(); err == nil || err.Error() != "arrowio: a record batch needs a batch, and the layout of its loader" {
			t.Error(err)
		}
	}
}
