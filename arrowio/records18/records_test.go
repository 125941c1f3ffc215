package records18_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio/records18"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestRecordsAreRetained counts the memory of the records18. The dataset keeps it
// until Close, and releases it if New fails.
func TestRecordsAreRetained(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	record := labeled(pool, 4, 1, 2, 3)
	other := labeled(pool, 5, 1)
	defer other.Release()
	if _, err := records18.New(record.Schema(), []arrow.RecordBatch{record, other}, records18.Options{}); status.CodeOf(err) != status.Incompatible ||
		err.Error() != `arrowio: record batch 1 of the records has column 0 "image" of type fixed_size_list<item: float32, nullable>[5], but the schema has "image" of type fixed_size_list<item: float32, nullable>[4]; `+
			"give records of one schema, such as the records of one reader or builder" {
		t.Error(err)
	}
	ds, err := records18.New(record.Schema(), []arrow.RecordBatch{record}, records18.Options{})
	if err != nil {
		t.Fatal(err)
	}
	record.Release()
	if pool.CurrentAlloc() == 0 {
		t.Fatal("the records are gone while the dataset is open")
	}
	g, err := ds.Gatherer([]source.Part{source.Part{Boxes: [][][2]int{{{0, 4}}}}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 16)
	if err := g.Gather(context.Background(), source.Draw{}, []int64{2}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}}); err != nil || fmt.Sprint(dst[:4]) != "[0 0 64 64]" {
		t.Error(dst, err)
	}
	if err := ds.Close(); err != nil {
		t.Error(err)
	}
}

// TestShortBuffers: the buffers are too small for their lengths.
func TestShortBuffers(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	data := array.NewData(arrow.PrimitiveTypes.Int64, 4, []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 32))}, nil, 0, 0)
	column := array.NewInt64Data(data)
	record := array.NewRecordBatch(schema, []arrow.Array{column}, 4)
	data.Buffers()[1].ResizeNoShrink(31)
	_, err := records18.New(schema, []arrow.RecordBatch{record}, records18.Options{})
	if want := `arrowio: record batch 0 of the records: column "x": level 0 has a buffer of 31 bytes, but 32 are needed; the producer of the records is at fault`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := records18.New(nil, nil, records18.Options{}); err == nil || err.Error() != "arrowio: records need a schema" {
		t.Error(err)
	}
	if _, err := records18.New(schema, []arrow.RecordBatch{nil}, records18.Options{}); err == nil || err.Error() != "arrowio: record batch 0 of the records is nil" {
		t.Error(err)
	}
}

// TestShapes tries shapes of more dimensions than the rows are stored in, shapes
// that do not fit, and columns that do not exist.
func TestShapes(t *testing.T) {
	record := labeled(memory.DefaultAllocator, 4, 1, 2)
	defer record.Release()
	for _, c := range []struct {
		shapes map[string][]int
		want   string
	}{
		{map[string][]int{"image": {2, 2}}, "[2 2]"},
		{map[string][]int{"image": {3}}, `arrowio: field "image" has rows of 4 elements in dimension 0 by its type, where shape [3] has 3; leave its shape out, or correct it`},
		{map[string][]int{"picture": {4}}, `arrowio: a shape is given for "picture", but there is no such column; there are "image", "label"`},
	} {
		ds, err := records18.New(record.Schema(), []arrow.RecordBatch{record}, records18.Options{Shapes: c.shapes})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(ds.Schema().Fields[0].Shape)
			if err := ds.Close(); err != nil {
				t.Error(err)
			}
		}
		if got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.shapes, got, c.want)
		}
	}
}

// labeled makes a record batch. Each row has a label, and repeats it in its image.
func labeled(pool memory.Allocator, width int32, labels ...int32) arrow.RecordBatch {
	b := array.NewRecordBuilder(pool, arrow.NewSchema([]arrow.Field{
		{Name: "image", Type: arrow.FixedSizeListOf(width, arrow.PrimitiveTypes.Float32)},
		{Name: "label", Type: arrow.PrimitiveTypes.Int32},
	}, nil))
	defer b.Release()
	images := b.Field(0).(*array.FixedSizeListBuilder)
	for _, label := range labels {
		images.Append(true)
		for range width {
			images.ValueBuilder().(*array.Float32Builder).Append(float32(label))
		}
	}
	b.Field(1).(*array.Int32Builder).AppendValues(labels, nil)
	return b.NewRecordBatch()
}

// Use record batches of Arrow's Go library as a dataset.
func ExampleNew() {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "label", Type: arrow.PrimitiveTypes.Int32},
		{Name: "text", Type: arrow.BinaryTypes.String},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int32Builder).AppendValues([]int32{10, 11, 12}, nil)
	b.Field(1).(*array.StringBuilder).AppendValues([]string{"a", "b", "c"}, nil)
	record := b.NewRecordBatch()
	defer record.Release()

	ds, err := records18.New(schema, []arrow.RecordBatch{record}, records18.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ds.Close()
	g, err := ds.Gatherer([]source.Part{{Field: 0, Boxes: [][][2]int{{}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := make([]byte, 8)
	err = g.Gather(context.Background(), source.Draw{}, []int64{2, 0}, []source.Job{{Rows: [2]int{0, 2}, Dst: rows}})
	fmt.Println(ds.Len(), "records;", rows, err)

	r, err := ds.Reader([]int{1})
	if err != nil {
		fmt.Println(err)
		return
	}
	text := []source.Span{{Field: 1, Record: 2}}
	err = r.Read(context.Background(), source.Draw{}, text, func() error {
		fmt.Printf("%s %s\n", ds.Schema().Fields[1].Logical, text[0].Row)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 3 records; [12 0 0 0 10 0 0 0] <nil>
	// string c
}
