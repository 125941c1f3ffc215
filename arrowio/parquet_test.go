package arrowio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// parquetFiles returns small Parquet files of several writers, encodings and codecs. The
// script generate.py in their directory writes them.
func parquetFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/parquet/*.parquet")
	if err != nil || len(paths) < 9 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	return paths
}

// gatherRows gathers all rows of a field.
func gatherRows(t testing.TB, ds source.Source, field int) []byte {
	t.Helper()
	f := ds.Schema().Fields[field]
	g, err := ds.Gatherer([]source.Part{whole(field, f)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	records := make([]int64, ds.Len())
	for i := range records {
		records[i] = int64(i)
	}
	dst := make([]byte, len(records)*f.RowBytes())
	if err := g.Gather(context.Background(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
		t.Fatalf("field %q: %v", f.Name, err)
	}
	return dst
}

// TestParquetGolden compares each file with an Arrow file, which holds what pyarrow reads
// from it.
func TestParquetGolden(t *testing.T) {
	for _, path := range parquetFiles(t) {
		for _, io := range []string{"map", "read"} {
			got, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: io})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			want, err := arrowio.Open(strings.TrimSuffix(path, "parquet") + "arrow")
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			if a, b := kindsOf(got), kindsOf(want); a != b || got.Len() != want.Len() {
				t.Fatalf("%s: %d rows of\n%s\nwant %d rows of\n%s", path, got.Len(), a, want.Len(), b)
			}
			for i, f := range got.Schema().Fields {
				read := gatherRows
				if f.Ragged > 0 {
					read = everyRow
				}
				if !bytes.Equal(read(t, got, i), read(t, want, i)) {
					t.Errorf("%s, %s: field %q differs from what pyarrow reads", path, io, f.Name)
				}
			}
			if _, err := got.Verify(t.Context(), arrowio.VerifyOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
}

// everyRow returns all rows of a ragged field.
func everyRow(t testing.TB, ds source.Source, field int) []byte {
	t.Helper()
	records := make([]int64, ds.Len())
	for i := range records {
		records[i] = int64(i)
	}
	rows, err := readRagged(ds, field, records)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// kindsOf describes the fields and the skipped columns of a dataset.
func kindsOf(ds *arrowio.Dataset) string {
	var lines []string
	s := ds.Schema()
	for _, f := range s.Fields {
		logical := f.Logical
		if strings.HasPrefix(logical, "dictionary<values=string") {
			logical = "string" // Parquet files are read without Arrow's dictionaries
		}
		lines = append(lines, fmt.Sprintf("%s: %v%v %s ragged %d", f.Name, f.Type, f.Shape, logical, f.Ragged))
	}
	for _, f := range s.Skipped {
		lines = append(lines, f.Name+": "+f.Reason)
	}
	return strings.Join(lines, "\n")
}

// TestParquetFacts: what the command inspect shows of a file.
func TestParquetFacts(t *testing.T) {
	const path = "testdata/parquet/nulls.parquet"
	if _, err := arrowio.Open(path, path); err == nil {
		t.Fatal("a file was accepted twice")
	}
	ds, err := arrowio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	f := ds.Files()[0]
	if f.Format != "parquet" || f.Compression != "lz4" || f.Records != 23 || f.Batches != 3 || f.LargestBatch != 9 {
		t.Errorf("%+v", f)
	}
	for _, f := range ds.Schema().Fields {
		if !f.Nullable {
			t.Errorf("field %q has nulls", f.Name)
		}
	}
}

// TestParquetSchemasDiffer: files that are one dataset need the same columns.
func TestParquetSchemasDiffer(t *testing.T) {
	_, err := arrowio.Open("testdata/parquet/delta.parquet", "testdata/parquet/lists.parquet")
	const want = `arrowio: testdata/parquet/lists.parquet: there is no column "i", which testdata/parquet/delta.parquet has; ` +
		"the files have no columns in common; open them apart"
	if status.CodeOf(err) != status.Incompatible || err.Error() != want {
		t.Error(err)
	}
}

// TestTruncatedParquet truncates a file at every byte, or all files with MESHFEED_DEEP=1.
// Open must refuse every truncated file.
func TestTruncatedParquet(t *testing.T) {
	for _, from := range parquetFiles(t) {
		if filepath.Base(from) != "duckdb.parquet" && os.Getenv("MESHFEED_DEEP") == "" {
			continue
		}
		openCut(t, filepath.Base(from), contentOf(t, from))
	}
}

func contentOf(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDamagedPages changes bytes of the pages, one after the other. The file has checksums
// of its pages, so all damage of values must be found. Damage of a page's header may
// change nothing that is read.
func TestDamagedPages(t *testing.T) {
	data, path := contentOf(t, "testdata/parquet/nulls.parquet"), filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := gatherAll(t, path, "read")
	if err != nil {
		t.Fatal(err)
	}
	refused, tried := 0, 0
	footer := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	step := max(1, footer/random.Count(600, footer))
	for at := 4; at < footer; at += step {
		damaged := slices.Clone(data)
		damaged[at] ^= byte(1 + at%255)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := gatherAll(t, path, "read")
		tried++
		switch {
		case err != nil:
			named(t, path, err)
			refused++
		case !slices.EqualFunc(got, want, bytes.Equal):
			t.Errorf("other values after byte %d was changed", at)
		}
	}
	if refused < tried*3/4 {
		t.Errorf("only %d of %d damages were found", refused, tried)
	}
}
