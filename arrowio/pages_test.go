package arrowio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/tests/random"
)

// pagedFiles returns files with page indexes. Their two row groups have many small pages.
func pagedFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/parquet/paged*.parquet")
	if err != nil || len(paths) != 3 {
		t.Fatal(paths, err)
	}
	return paths
}

// openDivided opens a file with units of a number of stored bytes.
func openDivided(t *testing.T, path string, least, twice int64, o arrowio.Options) (*arrowio.Dataset, error) {
	t.Helper()
	defer arrowio.DividePages(least, twice)()
	ds, err := arrowio.OpenFiles(t.Context(), []string{path}, o)
	if err == nil {
		t.Cleanup(func() { _ = ds.Close() })
	}
	return ds, err
}

// TestRunsOfPages divides files into runs of pages, of many lengths, and compares their rows
// with what pyarrow reads.
func TestRunsOfPages(t *testing.T) {
	rng := random.New(t)
	for i, path := range pagedFiles(t) {
		if random.Race && i > 0 {
			break // one file is enough for the race detector
		}
		want, err := arrowio.Open(strings.TrimSuffix(path, "parquet") + "arrow")
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		whole, err := arrowio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		last := 2
		for _, least := range []int64{4000, 1500, 100} {
			got, err := openDivided(t, path, least, 1, arrowio.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := got.Files()[0]
			if f.Batches <= last || f.Records != want.Len() || f.LargestBatch >= 120 {
				t.Fatalf("%s: units of %d bytes: %+v", path, least, f)
			}
			last = f.Batches
			compareRandom(t, rng, got, want)
			if a, b := samples(t, whole), samples(t, got); a != b {
				t.Error("the fingerprint depends on the division into pages")
			}
			v, err := got.Verify(t.Context(), arrowio.VerifyOptions{})
			if err != nil || v.Batches != int64(f.Batches) {
				t.Errorf("%v: %+v", err, v)
			}
		}
	}
}

// TestRunsOfPagesOfOthers opens files of Spark, arrow-rs and polars twice, with runs of pages
// and with row groups as units, and compares the rows.
func TestRunsOfPagesOfOthers(t *testing.T) {
	paths, err := filepath.Glob("../tests/writers/files/*.parquet")
	if err != nil || len(paths) < 20 {
		t.Fatal(paths, err)
	}
	rng, divided := random.New(t), map[string]int{}
	for _, path := range append(paths, "testdata/parquet/polars.parquet") {
		want, err := arrowio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		got, err := openDivided(t, path, 200, 1, arrowio.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Files()[0].Batches > want.Files()[0].Batches {
			writer, _, _ := strings.Cut(filepath.Base(path), "-")
			divided[writer]++
		}
		compareRandom(t, rng, got, want)
	}
	if divided["spark"] == 0 || divided["arrow"] == 0 {
		t.Errorf("few files were divided: %v", divided)
	}
}

// compareRandom compares all rows, and random ones, of all fields.
func compareRandom(t *testing.T, rng *rand.Rand, got, want *arrowio.Dataset) {
	t.Helper()
	if a, b := kindsOf(got), kindsOf(want); a != b {
		t.Fatalf("fields\n%s\nwant\n%s", a, b)
	}
	a, b := allRows(t, got), allRows(t, want)
	for i, f := range got.Schema().Fields {
		if !bytes.Equal(a[i], b[i]) {
			t.Errorf("field %q differs from what pyarrow reads", f.Name)
		}
		for range 10 {
			records := make([]int64, 1+rng.IntN(8))
			for k := range records {
				records[k] = rng.Int64N(got.Len())
			}
			a, err := gatherField(got, i, f, records)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := gatherField(want, i, f, records); err != nil || !bytes.Equal(a, b) {
				t.Fatalf("field %q, rows %d: %v: got\n%s\nwant\n%s", f.Name, records, err, a, b)
			}
		}
	}
}

// samples returns what the fingerprint of a large file would be.
func samples(t *testing.T, ds *arrowio.Dataset) [32]byte {
	t.Helper()
	sum, err := ds.HashSamples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestRunsOfPagesOnDisk: units of one division are not taken for units of another one.
func TestRunsOfPagesOnDisk(t *testing.T) {
	onDisk(t)
	rng, folder := random.New(t), t.TempDir()
	for i, path := range pagedFiles(t) {
		if random.Race && i > 0 {
			break // one file is enough for the race detector
		}
		want, err := arrowio.Open(strings.TrimSuffix(path, "parquet") + "arrow")
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		for _, least := range []int64{1 << 30, 1500, 100} {
			got, err := openDivided(t, path, least, 1, arrowio.Options{Cache: folder})
			if err != nil {
				t.Fatal(err)
			}
			compareRandom(t, rng, got, want)
		}
	}
}

// TestDamagedIndexes changes offset indexes. All rows must be right, or the error must name the
// file.
func TestDamagedIndexes(t *testing.T) {
	rng := random.New(t)
	tried := 40
	if os.Getenv("MESHFEED_DEEP") != "" {
		tried = 300
	}
	for _, from := range pagedFiles(t) {
		data, path := contentOf(t, from), filepath.Join(t.TempDir(), "x.parquet")
		want, err := openDivided(t, from, 1<<30, 1, arrowio.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows, meta, refused, divided := allRows(t, want), footerOf(t, data), 0, 0
		for range tried {
			damaged := bytes.Clone(data)
			group, leaf := &meta.Groups[rng.IntN(2)], rng.IntN(len(meta.Leaves))
			damageIndex(rng, damaged, &group.Chunks[leaf], group.Rows)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := openDivided(t, path, 300, 1, arrowio.Options{IO: "read"})
			if err != nil { // the first lists decide the shape
				named(t, path, err)
				refused++
				continue
			}
			if got.Files()[0].Batches > 2 {
				divided++
			}
			field, found := slices.BinarySearch(meta.Firsts, leaf)
			if !found {
				field--
			}
			switch found, err := readAll(got, field); {
			case err != nil:
				named(t, path, err)
				refused++
			case !bytes.Equal(found, rows[field]):
				t.Fatalf("field %d has other rows", field)
			}
			_ = got.Close()
		}
		if refused == 0 || divided == 0 {
			t.Errorf("%s: of %d files, %d were divided, and %d were refused", from, tried, divided, refused)
		}
	}
}

// damageIndex changes the offset index of a chunk: a byte, or the first row of a page so that
// the index does not contradict itself.
func damageIndex(rng *rand.Rand, data []byte, c *parquet.Chunk, rows int64) {
	data = data[c.Index:][:c.IndexBytes]
	x, err := parquet.ReadOffsetIndex(data, c, rows)
	if page := rng.IntN(len(x.Rows) - 1); err == nil && page > 0 && rng.IntN(2) == 0 {
		before, row, after := x.Rows[page-1], x.Rows[page], x.Rows[page+1]
		old := append(binary.AppendVarint([]byte{0x16}, row), 0)
		if at := bytes.LastIndex(data, old); at >= 0 {
			changed := append(binary.AppendVarint([]byte{0x16}, before+rng.Int64N(after-before+1)), 0)
			if len(changed) == len(old) {
				copy(data[at:], changed)
				return
			}
		}
	}
	at := rng.IntN(len(data))
	data[at] = random.One(rng, data[at]^byte(1<<rng.IntN(8)), data[at]+byte(rng.IntN(9)-4), byte(rng.IntN(256)))
}

// allRows reads all rows of each field.
func allRows(t *testing.T, ds *arrowio.Dataset) (rows [][]byte) {
	t.Helper()
	for i := range ds.Schema().Fields {
		all, err := readAll(ds, i)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, all)
	}
	return rows
}

// readAll reads all rows of a field.
func readAll(ds *arrowio.Dataset, field int) ([]byte, error) {
	records := make([]int64, ds.Len())
	for i := range records {
		records[i] = int64(i)
	}
	return gatherField(ds, field, ds.Schema().Fields[field], records)
}

func footerOf(t *testing.T, data []byte) *parquet.File {
	t.Helper()
	offset, n, err := parquet.FooterOf(data, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := parquet.ReadFile(data[offset:][:n], offset)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// TestWrongIndexes: an index that contradicts the pages is an error of the rows that need it.
func TestWrongIndexes(t *testing.T) {
	const from = "testdata/parquet/paged_v2.parquet"
	data, path := contentOf(t, from), filepath.Join(t.TempDir(), "x.parquet")
	c := &footerOf(t, data).Groups[1].Chunks[0]
	index := data[c.Index:][:c.IndexBytes]
	// The last page says that it begins with a row before the true one.
	at := len(index) - 3 // before the ends of two structs
	if index[at] != 2*30 {
		t.Fatalf("the last page begins with row %d", index[at]/2)
	}
	index[at] -= 2
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ds, err := openDivided(t, path, 300, 1, arrowio.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gatherField(ds, 0, ds.Schema().Fields[0], []int64{0, 119, 120}); err != nil {
		t.Error(err)
	}
	_, err = gatherField(ds, 0, ds.Schema().Fields[0], []int64{159})
	want := fmt.Sprintf(`arrowio: %s: field "i": row group 1: page 2 at byte 292 of the column: 10 rows, but 11 in the offset index; the data are damaged or cut short; write them again`, path)
	if status.CodeOf(err) != status.DataLoss || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := ds.Verify(t.Context(), arrowio.VerifyOptions{}); err == nil {
		t.Error("Verify found nothing")
	}
}
