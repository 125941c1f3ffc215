package arrowio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/thrift/thrifttest"
	"github.com/meshfeed/meshfeed/tests/random"
)

const latency = 30 * time.Millisecond

// farFiles returns an opener of 8 Parquet files with 4 row groups each. A row group has rows of
// three columns, 16 bytes together.
func farFiles(rows int) *blobtest.Far {
	m := blobtest.Memory{}
	for i := range 8 {
		m[fmt.Sprintf("s3://b/%d.parquet", i)] = parquetGroups(4, rows, 1, byte(i))
	}
	return &blobtest.Far{Opener: m, Latency: latency, Suits: blob.Far}
}

// parquetGroups returns a Parquet file with int64, int32 and float32 columns a, b and c. If a column
// has several pages, the file has offset indexes.
func parquetGroups(groups, rows, pages int, seed byte) []byte {
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
	var indexes [][]byte
	for range groups {
		var chunks []thrift
		for _, c := range columns {
			at, n := int64(len(file)), rows/pages*c.size
			var locations []thrift
			for page := range pages {
				begin := len(file)
				file = append(file, thrift{1: int32(0), 2: int32(n), 3: int32(n), 5: thrift{1: int32(rows / pages), 2: int32(0), 3: int32(3), 4: int32(3)}}.Bytes()...)
				values := make([]byte, n)
				for i := 0; i < n; i += c.size {
					binary.LittleEndian.PutUint32(values[i:], uint32(len(file)+i)*2654435761+uint32(seed))
				}
				file = append(file, values...)
				locations = append(locations, thrift{1: int64(begin), 2: int32(len(file) - begin), 3: int64(page * (rows / pages))})
			}
			length := int64(len(file)) - at
			indexes = append(indexes, thrift{1: locations}.Bytes())
			chunks = append(chunks, thrift{2: at, 3: thrift{1: int32(c.kind), 2: []int32{0}, 4: int32(0), 5: int64(rows), 6: length, 7: length, 9: at}})
		}
		for i := 0; pages > 1 && i < len(chunks); i++ {
			index := indexes[len(indexes)-len(chunks)+i]
			chunks[i][4], chunks[i][5] = int64(len(file)), int32(len(index))
			file = append(file, index...)
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

// gatherSteps gathers two fields of a record in a thousand in some steps, and returns the rows.
func gatherSteps(t *testing.T, ds *arrowio.Dataset, steps int, shuffle bool) (rows []byte) {
	t.Helper()
	schema := ds.Schema()
	g, err := ds.Gatherer([]source.Part{schema.Whole(0), schema.Whole(2)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var records []int64
	for r := int64(7); r < ds.Len(); r += 1000 {
		records = append(records, r)
	}
	if shuffle {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(records), func(i, k int) { records[i], records[k] = records[k], records[i] })
	}
	for step := range slices.Chunk(records, len(records)/steps) {
		a, c := make([]byte, 8*len(step)), make([]byte, 4*len(step))
		all := [2]int{0, len(step)}
		if err := g.Gather(context.Background(), source.Draw{}, step, []source.Job{{Part: 0, Rows: all, Dst: a}, {Part: 1, Rows: all, Dst: c}}); err != nil {
			t.Fatal(err)
		}
		rows = append(append(rows, a...), c...)
	}
	return rows
}

// TestReadsOfAnEpoch counts the reads of the row groups: one for each 8 MiB that the fields need, and
// one more for the rest of each file. In little memory, one more where a file is divided.
func TestReadsOfAnEpoch(t *testing.T) {
	const rows = 200_000
	most := 8*4*rows*12/(8<<20) + 1 + 8
	near, err := arrowio.OpenFiles(t.Context(), []string{"s3://b/*.parquet"}, arrowio.Options{Opener: farFiles(rows).Opener, Cache: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	for i, c := range []struct {
		name    string
		steps   int
		shuffle bool
		onDisk  bool
		ahead   int64
		depth   int
	}{
		{"one shuffled step", 1, true, false, 128 << 20, 1},
		{"shuffled steps", 32, true, false, 128 << 20, 1},
		{"sequential steps", 32, false, false, 128 << 20, 16},
		{"shuffled steps from the disk cache", 32, true, true, 128 << 20, 1},
		{"shuffled steps from the disk cache, in little memory", 32, true, true, 16 << 20, 8},
	} {
		if random.Race && i%3 != 1 {
			continue // one case of each cache is enough for the race detector
		}
		want := gatherSteps(t, near, c.steps, c.shuffle)
		synctest.Test(t, func(t *testing.T) {
			f := farFiles(rows)
			f.Suits.Ahead = c.ahead
			o := arrowio.Options{Cache: "memory"}
			if c.onDisk {
				o.Cache = t.TempDir()
			}
			ds, _, _ := openFar(t, f, "s3://b/*.parquet", o)
			defer ds.Close()
			began := time.Now()
			if got := gatherSteps(t, ds, c.steps, c.shuffle); !bytes.Equal(got, want) {
				t.Errorf("%s: other rows", c.name)
			}
			depth, reads := took(f, began)
			if c.ahead < 128<<20 {
				most += 8
			}
			if reads.Number > most || depth > c.depth || reads.Bytes > 8*4*rows*16+1<<20 {
				t.Errorf("%s: %+v, %d in sequence, and more than %d reads", c.name, reads, depth, most)
			}
			gatherSteps(t, ds, c.steps, !c.shuffle)
			if reads := f.Take(); reads.Number > 0 {
				t.Errorf("%s, second epoch: %+v", c.name, reads)
			}
		})
	}
}

// TestOneFetchPerHost: processes that share a cache on disk fetch each row group once together, also if
// memory holds only a part of them. Two datasets take the place of two processes, because the locks of
// files count for each opening.
func TestOneFetchPerHost(t *testing.T) {
	const rows, steps = 50_000, 8
	synctest.Test(t, func(t *testing.T) {
		f, o := farFiles(rows), arrowio.Options{Cache: t.TempDir()}
		f.Suits.Ahead = 8 << 20
		f.Latency = 300 * time.Millisecond
		var all [4]*arrowio.Dataset
		for i := range all {
			all[i], _, _ = openFar(t, f, "s3://b/*.parquet", o)
			defer all[i].Close()
		}
		got := make(chan []byte)
		for i := range all {
			go func() { got <- gatherSteps(t, all[i], steps, i%2 == 0) }()
		}
		var rowsOf [2][]byte
		for range all {
			rows := <-got
			if k := slices.IndexFunc(rowsOf[:], func(have []byte) bool { return have == nil || bytes.Equal(have, rows) }); k < 0 {
				t.Error("other rows")
			} else {
				rowsOf[k] = rows
			}
		}
		if reads := f.Take(); reads.Bytes > 8*4*rows*16+64<<10 || reads.Bytes < 8*4*rows*12 {
			t.Errorf("%+v", reads)
		}
	})
}

// TestReadsOfPages: a read takes pages of several units of a large row group, and their offset
// indexes.
func TestReadsOfPages(t *testing.T) {
	const rows = 1_600_000
	data := parquetGroups(1, rows, 64, 0)
	near, err := arrowio.OpenFiles(t.Context(), []string{"x.parquet"}, arrowio.Options{Opener: blobtest.Memory{"x.parquet": data}, Cache: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	want := gatherSteps(t, near, 1, true)
	synctest.Test(t, func(t *testing.T) {
		f := &blobtest.Far{Opener: blobtest.Memory{"x.parquet": data}, Latency: latency, Suits: blob.Far}
		ds, _, reads := openFar(t, f, "x.parquet", arrowio.Options{Cache: "memory"})
		defer ds.Close()
		if units := ds.Files()[0].Batches; units < 3 || reads.Number != 1 {
			t.Errorf("%d units: %+v", units, reads)
		}
		began := time.Now()
		if !bytes.Equal(gatherSteps(t, ds, 1, true), want) {
			t.Error("other rows")
		}
		depth, reads := took(f, began)
		if reads.Number > rows*12/(8<<20)+2 || depth != 1 {
			t.Errorf("%+v, %d in sequence", reads, depth)
		}
	})
}

// TestReadsOfCompressedBatches: one read takes the header and all buffers of a record batch of IPC.
func TestReadsOfCompressedBatches(t *testing.T) {
	data, err := os.ReadFile("../internal/arrowmeta/testdata/lz4.arrow")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := &blobtest.Far{Opener: blobtest.Memory{"x.arrow": data}, Latency: latency, Suits: blob.Far}
		ds, _, _ := openFar(t, f, "x.arrow", arrowio.Options{Cache: "memory"})
		defer ds.Close()
		schema, began := ds.Schema(), time.Now()
		g, err := ds.Gatherer([]source.Part{schema.Whole(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		f.Take()
		dst := make([]byte, 2*schema.Fields[0].RowBytes())
		if err := g.Gather(context.Background(), source.Draw{}, []int64{ds.Len() - 1, 0}, []source.Job{{Rows: [2]int{0, 2}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		if _, reads := took(f, began); reads.Number != 1 {
			t.Errorf("a record batch: %+v", reads)
		}
	})
}

// TestReadsOfBuffers: of a record batch, only the buffers of wanted columns are read, and those that lie close together
// in one read. The headers were read at the opening.
func TestReadsOfBuffers(t *testing.T) {
	for _, name := range []string{"fixed.arrow", "lz4.arrow"} {
		data, err := os.ReadFile("../internal/arrowmeta/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		near, err := arrowio.OpenFiles(t.Context(), []string{name}, arrowio.Options{Opener: blobtest.Memory{name: data}, Cache: "memory"})
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		const field = 2 // 4 bytes of about 80
		want := gatherRows(t, near, field)
		synctest.Test(t, func(t *testing.T) {
			hints := blob.Far
			hints.Gap = 64
			f := &blobtest.Far{Opener: blobtest.Memory{name: data}, Latency: latency, Suits: hints}
			ds, _, _ := openFar(t, f, name, arrowio.Options{Cache: t.TempDir()})
			defer ds.Close()
			if got := gatherRows(t, ds, field); !bytes.Equal(got, want) {
				t.Errorf("%s: other rows", name)
			}
			reads, batches := f.Take(), ds.Files()[0].Batches
			if rows := int64(len(want)); reads.Number > batches || reads.Bytes > rows+int64(batches)*128 {
				t.Errorf("%s: %+v for %d bytes of rows in %d record batches", name, reads, rows, batches)
			}
		})
	}
}

// TestNoRoomFarAway: a folder that cannot hold ragged fields is an error before the first rows, with both numbers.
func TestNoRoomFarAway(t *testing.T) {
	data, err := os.ReadFile("testdata/parquet/ragged.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{10: " bytes, but the cache in ", 1 << 20: ""} {
		f := &blobtest.Far{Opener: blobtest.Memory{"x.parquet": data}, Latency: time.Microsecond, Suits: blob.Far}
		ds, _, _ := openFar(t, f, "x.parquet", arrowio.Options{Cache: t.TempDir(), CacheBytes: limit})
		defer ds.Close()
		r, err := ds.Reader([]int{0})
		if (err != nil) != (want != "") || err != nil && (status.CodeOf(err) != status.ResourceExhausted ||
			!strings.HasPrefix(err.Error(), "arrowio: the decoded fields take about ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v", err)
		}
		if err == nil {
			_ = r.Close()
		}
	}
}

// TestReadsOfLargeFooters: a second read has the rest of a footer of more than 64 KiB.
func TestReadsOfLargeFooters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := parquetGroups(1000, 10, 1, 0)
		f := &blobtest.Far{Opener: blobtest.Memory{"x.parquet": data}, Latency: latency, Suits: blob.Far}
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
		hints := blob.Far
		hints.Gap = 0
		f := &blobtest.Far{Opener: blobtest.Memory{"x.arrow": data}, Latency: latency, Suits: hints}
		ds, depth, reads := openFar(t, f, "x.arrow", arrowio.Options{IO: "read"})
		defer ds.Close()
		if batches := ds.Files()[0].Batches; batches < 2 || reads.Number != 1+batches || depth != 2 {
			t.Errorf("%d record batches: %+v, %d in sequence", batches, reads, depth)
		}
	})
}

// TestHintsOfNothing: an opener without hints is an error.
func TestHintsOfNothing(t *testing.T) {
	_, err := arrowio.OpenFiles(t.Context(), []string{"x.arrow"}, arrowio.Options{Opener: &blobtest.Far{Opener: blobtest.Memory{"x.arrow": nil}}})
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "return blob.Disk if nothing else is known") {
		t.Errorf("got %v", err)
	}
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
