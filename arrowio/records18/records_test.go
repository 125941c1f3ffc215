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

// labeled makes a record batch of one column.
func labeled(pool memory.Allocator, name string, labels ...int32) arrow.RecordBatch {
	b := array.NewRecordBuilder(pool, arrow.NewSchema([]arrow.Field{{Name: name, Type: arrow.PrimitiveTypes.Int32}}, nil))
	defer b.Release()
	b.Field(0).(*array.Int32Builder).AppendValues(labels, nil)
	return b.NewRecordBatch()
}

// TestRecordsAreRetained counts the memory of the records. The dataset keeps it
// until Close.
func TestRecordsAreRetained(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	record := labeled(pool, "label", 1, 2, 3)
	ds, err := records18.New(record.Schema(), []arrow.RecordBatch{record}, records18.Options{})
	if err != nil {
		t.Fatal(err)
	}
	record.Release()
	if pool.CurrentAlloc() == 0 {
		t.Error("the records are gone while the dataset is open")
	}
	if err := ds.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecordsRefused checks whole messages.
func TestRecordsRefused(t *testing.T) {
	record, other := labeled(memory.DefaultAllocator, "label", 1), labeled(memory.DefaultAllocator, "number", 1)
	defer record.Release()
	defer other.Release()
	for want, given := range map[string]struct {
		schema  *arrow.Schema
		batches []arrow.RecordBatch
	}{
		"arrowio: records need a schema":                {nil, nil},
		"arrowio: record batch 0 of the records is nil": {record.Schema(), []arrow.RecordBatch{nil}},
		`arrowio: record batch 1 of the records has column 0 "number" of type int32, but the schema has "label" of type int32; give records of one schema, such as those of one reader or builder`: {
			record.Schema(), []arrow.RecordBatch{record, other}},
	} {
		_, err := records18.New(given.schema, given.batches, records18.Options{})
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if given.batches != nil && given.batches[0] != nil && status.CodeOf(err) != status.Incompatible {
			t.Errorf("the code is %v", status.CodeOf(err))
		}
	}
}

// Use record batches of Arrow's Go library as a dataset.
func ExampleNew() {
	record := labeled(memory.DefaultAllocator, "label", 10, 11, 12)
	defer record.Release()
	ds, err := records18.New(record.Schema(), []arrow.RecordBatch{record}, records18.Options{})
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
	err = g.Gather(context.Background(), []int64{2, 0}, []source.Job{{Rows: [2]int{0, 2}, Dst: rows}})
	fmt.Println(ds.Len(), "records;", rows, err)
	// Output:
	// 3 records; [12 0 0 0 10 0 0 0] <nil>
}
