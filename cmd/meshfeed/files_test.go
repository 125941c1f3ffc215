package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// writeDigits creates a folder with train-0.arrow (12 records in record batches
// of up to 5) and train-1.arrow (7 records in one record batch). The columns are
// a 2 × 2 image, a label, and a text, which cannot be an array. The folder also has a
// Parquet file, table.parquet, two copies of it in the partitions of tables, and saved with
// a file of Hugging Face.
func writeDigits(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	next := 0
	for i, batches := range [][]int{{5, 5, 2}, {7}} {
		var records []arrow.Record
		for _, rows := range batches {
			records = append(records, someDigits(next, rows))
			next += rows
		}
		writeRecords(t, filepath.Join(dir, fmt.Sprintf("train-%d.arrow", i)), records...)
	}
	for _, c := range []struct{ from, to string }{
		{"../../arrowio/testdata/parquet/duckdb.parquet", "table.parquet"},
		{"../../arrowio/testdata/parquet/duckdb.parquet", "tables/year=2025/city=Oslo/0.parquet"},
		{"../../arrowio/testdata/parquet/duckdb.parquet", "tables/year=__HIVE_DEFAULT_PARTITION__/city=S%C3%A3o%20Paulo/0.parquet"},
		{"../../internal/arrowmeta/testdata/huggingface.stream", "saved/data-00000-of-00001.arrow"},
	} {
		copyFile(t, c.from, filepath.Join(dir, c.to))
	}
	return dir
}

func writeRecords(t *testing.T, path string, records ...arrow.Record) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := ipc.NewFileWriter(file, ipc.WithSchema(records[0].Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var digits = arrow.NewSchema([]arrow.Field{
	{Name: "image", Type: arrow.FixedSizeListOfNonNullable(2, arrow.FixedSizeListOfNonNullable(2, arrow.PrimitiveTypes.Float32))},
	{Name: "label", Type: arrow.PrimitiveTypes.Int32},
	{Name: "text", Type: arrow.BinaryTypes.String},
}, nil)

func someDigits(first, rows int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, digits)
	image := b.Field(0).(*array.FixedSizeListBuilder)
	row := image.ValueBuilder().(*array.FixedSizeListBuilder)
	pixel := row.ValueBuilder().(*array.Float32Builder)
	for i := first; i < first+rows; i++ {
		image.Append(true)
		for y := range 2 {
			row.Append(true)
			for x := range 2 {
				pixel.Append(float32(100*i + 10*y + x))
			}
		}
		b.Field(1).(*array.Int32Builder).Append(int32(i % 10))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprint("digit ", i))
	}
	return b.NewRecord()
}
