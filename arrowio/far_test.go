package arrowio_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/thrift/thrifttest"
)

// farHints suit a store of objects: a read of 8 MiB takes little longer than one of 1 MiB.
var farHints = blob.Hints{Gap: 1 << 20, Size: 8 << 20, AtOnce: 16, Ahead: 128 << 20}

const latency = 30 * time.Millisecond

// farFiles returns an opener of 8 Parquet files with 4 row groups each. A row group has rows of
// three columns, 16 bytes together.
func farFiles(rows int) *blobtest.Far {
	m := blobtest.Memory{}
	for i := range 8 {
		m[fmt.Sprintf("s3://b/%d.parquet", i)] = parquetGroups(4, rows, byte(i))
	}
	return &blobtest.Far{Opener: m, Latency: latency, Suits: farHints}
}

// parquetGroups returns a Parquet file with int64, int32 and float32 columns a, b and c.
func parquetGroups(groups, rows int, seed byte) []byte {
	file := []byte("PAR1")
	columns := []struct {
		name       string
		kind, size int
	}{{"a", 2, 8}, {"b", 1, 4}, {"c", 4, 4}}
	schema := []thrift{{4: "schema", 5: int32(len(columns))}}
	for _, c := range columns {
		schema = append(schema, thrift{1: int32(c.kind), 3: int32(0), 4: c.name})
	}
	var all []thrift
	for range groups {
		var chunks []thrift
		for _, c := range columns {
			at, n := int64(len(file)), rows*c.size
			file = append(file, thrift{1: int32(0), 2: int32(n), 3: int32(n), 5: thrift{1: int32(rows), 2: int32(0), 3: int32(3), 4: int32(3)}}.Bytes()...)
			values := make([]byte, n)
			for i := 0; i < n; i += c.size {
				binary.LittleEndian.PutUint32(values[i:], uint32(len(file)+i)*2654435761+uint32(seed))
			}
			file = append(file, values...)
			length := int64(len(file)) - at
			chunks = append(chunks, thrift{2: at, 3: thrift{1: int32(c.kind), 2: []int32{0}, 4: int32(0), 5: int64(rows), 6: length, 7: length, 9: at}})
		}
		all = append(all, thrift{1: chunks, 2: int64(rows * 16), 3: int64(rows)})
	}
	footer := thrifttest.Struct{1: int32(1), 2: schema, 3: int64(groups * rows), 4: all}.Bytes()
	file = append(file, footer...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(footer)))
	return append(file, "PAR1"...)
}

// took returns how many reads waited for each other since a time, and what they were.
func took(f *blobtest.Far, began time.Time) (depth int, reads blobtest.Reads) {
	return int(time.Since(began) / f.Latency), f.Take()
}

// openFar opens a dataset and returns how many reads that took.
func openFar(t *testing.T, f *blobtest.Far, pattern string, o arrowio.Options) (ds *arrowio.Dataset, depth int, reads blobtest.Reads) {
	t.Helper()
	o.Opener = f
	began := time.Now()
	ds, err := arrowio.OpenFiles(context.Background(), []string{pattern}, o)
	if err != nil {
		t.Fatal(err)
	}
	depth, reads = took(f, began)
	return ds, depth, reads
}

// TestReadsToOpen counts the reads that open a dataset and fingerprint it, with a delay of 30 ms for
// each read.
func TestReadsToOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := farFiles(200_000)
		ds, depth, reads := openFar(t, f, "s3://b/*.parquet", arrowio.Options{})
		defer ds.Close()
		if reads.Number != 8 || depth != 1 || reads.Bytes != 8*64<<10 {
			t.Errorf("8 files of Parquet: %+v, %d in sequence", reads, depth)
		}
		began := time.Now()
		if _, err := ds.Fingerprint(context.Background()); err != nil {
			t.Fatal(err)
		}
		if depth, reads := took(f, began); reads.Number > 64 || depth > 4 || reads.AtOnce != 16 || reads.Bytes > 1<<20 {
			t.Errorf("a fingerprint: %+v, %d in sequence", reads, depth)
		}
	})
}

// TestReadsOfLargeFooters: a second read has the rest of a footer of more than 64 KiB.
func TestReadsOfLargeFooters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := parquetGroups(1000, 10, 0)
		f := &blobtest.Far{Opener: blobtest.Memory{"x.parquet": data}, Latency: latency, Suits: farHints}
		ds, depth, reads := openFar(t, f, "x.parquet", arrowio.Options{})
		defer ds.Close()
		footer := int64(binary.LittleEndian.Uint32(data[len(data)-8:]))
		if footer < 64<<10 || reads.Number != 2 || depth != 2 || reads.Bytes != footer+8 {
			t.Errorf("a footer of %d bytes: %+v, %d in sequence", footer, reads, depth)
		}
	})
}

// TestReadsOfHeaders: the headers of an IPC file are read at once.
func TestReadsOfHeaders(t *testing.T) {
	data, err := os.ReadFile("../internal/arrowmeta/testdata/fixed.arrow")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		hints := farHints
		hints.Gap = 0
		f := &blobtest.Far{Opener: blobtest.Memory{"x.arrow": data}, Latency: latency, Suits: hints}
		ds, depth, reads := openFar(t, f, "x.arrow", arrowio.Options{IO: "read"})
		defer ds.Close()
		if batches := ds.Files()[0].Batches; batches < 2 || reads.Number != 1+batches || depth != 2 {
			t.Errorf("%d record batches: %+v, %d in sequence", batches, reads, depth)
		}
	})
}

// TestDamagedStart: a file is known by its end, and Verify compares its first bytes.
func TestDamagedStart(t *testing.T) {
	for name, from := range map[string]string{"x.parquet": "testdata/parquet/plain.parquet", "x.arrow": "../internal/arrowmeta/testdata/fixed.arrow"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("arrowio: %s: start of the file at byte 0: it begins with \"Q", name)
		data[0] = 'Q'
		ds, err := arrowio.OpenFiles(t.Context(), []string{name}, arrowio.Options{Opener: blobtest.Memory{name: data}})
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		if _, err := ds.Verify(t.Context(), arrowio.VerifyOptions{}); status.CodeOf(err) != status.DataLoss || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
