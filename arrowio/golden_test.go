package arrowio_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/meshfeed/meshfeed/arrowio"
)

// batchesOf reads all record batches with Arrow's own library.
func batchesOf(data []byte) (records []arrow.Record, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("arrow/go panics: %v", r)
		}
	}()
	if !bytes.HasPrefix(data, []byte("ARROW1")) {
		r, err := ipc.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		for r.Next() {
			r.Record().Retain()
			records = append(records, r.Record())
		}
		return records, r.Err()
	}
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for i := range r.NumRecords() {
		record, err := r.RecordAt(i)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// appendRow adds the size bytes of row i of an array, zeros for nulls.
func appendRow(b []byte, a arrow.Array, i, size int) []byte {
	if a.IsNull(i) {
		return append(b, make([]byte, size)...)
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return appendRow(b, a.Storage(), i, size)
	case *array.Dictionary:
		return appendRow(b, a.Dictionary(), a.GetValueIndex(i), size)
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		for k := start; k < end; k++ {
			b = appendRow(b, a.ListValues(), int(k), size/int(end-start))
		}
		return b
	case *array.Boolean:
		if a.Value(i) {
			return append(b, 1)
		}
		return append(b, 0)
	}
	width := a.DataType().(arrow.FixedWidthDataType).Bytes()
	at := (a.Data().Offset() + i) * width
	return append(b, a.Data().Buffers()[1].Bytes()[at:at+width]...)
}

// rowsOf returns the bytes of a column's rows by record number.
func rowsOf(records []arrow.Record, name string, size int) (rows [][]byte) {
	for _, r := range records {
		column := r.Column(r.Schema().FieldIndices(name)[0])
		for i := range column.Len() {
			rows = append(rows, appendRow(nil, column, i, size))
		}
	}
	return rows
}

// TestGoldenFiles reads files of pyarrow, polars and Hugging Face's datasets. Every
// record of every field, in a random order, equals what Arrow's own library reads.
func TestGoldenFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, data := range validFiles(t) {
		if name == "temporal.arrow" || strings.HasSuffix(name, ".parquet") { // decimal32, which arrow/go v17 does not know; TestParquetGolden
			continue
		}
		records, err := batchesOf(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, io := range []string{"map", "read"} {
			ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: io})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkGolden(t, rng, ds, name+" "+io, records)
			ds.Close()
		}
	}
}

func checkGolden(t *testing.T, rng *rand.Rand, ds *arrowio.Dataset, name string, records []arrow.Record) {
	t.Helper()
	order := []int64{-1}
	for _, k := range rng.Perm(int(ds.Len())) {
		order = append(order, int64(k))
	}
	everyRaggedRow(t, ds, records)
	for _, n := range ds.Schema().Fixed() {
		f := ds.Schema().Fields[n]
		got, err := gatherField(ds, n, f, order)
		if err != nil && strings.Contains(err.Error(), "has a list of") {
			continue // lists of several lengths are not rows of one shape
		}
		if err != nil {
			t.Errorf("%s: field %q: %v", name, f.Name, err)
			continue
		}
		rows := rowsOf(records, f.Name, f.RowBytes())
		want := make([]byte, f.RowBytes(), len(got))
		for _, k := range order[1:] {
			want = append(want, rows[k]...)
		}
		if !bytes.Equal(got, want) || len(rows) != int(ds.Len()) {
			t.Errorf("%s: field %q, records %v:\n got %x\nwant %x", name, f.Name, order, got, want)
		}
	}
}

// TestGoldenFields checks which columns are fields, and their shapes.
func TestGoldenFields(t *testing.T) {
	for name, want := range map[string]string{
		"primitive.stream":   "label int32[], half float16[], maybe bool[] nullable, wide uint64[]",
		"fixed.arrow":        "image float32[4 3], bytes uint8[4], holes int8[2] nullable",
		"huggingface.stream": "image float32[2 3], open uint8[3 2 1], label int64[], tokens int32[4], ragged int8[1 2 2], box float32[2 2]",
		"polars.arrow":       "x float64[], s uint8[] ragged 1, l int64[] ragged 1",
	} {
		ds, err := arrowio.Open(filepath.Join("../internal/arrowmeta/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range ds.Schema().Fields {
			s := fmt.Sprintf("%s %v%v", f.Name, f.Type, f.Shape)
			if f.Ragged > 0 {
				s += fmt.Sprintf(" ragged %d", f.Ragged)
			}
			if f.Nullable {
				s += " nullable"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s:\n got %s\nwant %s", name, s, want)
		}
		for _, s := range ds.Schema().Skipped {
			if s.Name == "" || s.Type == "" || s.Reason == "" {
				t.Errorf("%s: skipped without a reason: %+v", name, s)
			}
		}
		ds.Close()
	}
}
