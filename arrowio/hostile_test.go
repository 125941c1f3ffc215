package arrowio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// validFiles returns files with every kind of column, most of at most 8 KiB. The
// scripts generate.py in their directories write them.
func validFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"../internal/arrowmeta/testdata/*.arrow", "../internal/arrowmeta/testdata/*.stream", "testdata/parquet/*.parquet"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(p)] = data
		}
	}
	return files
}

// named fails the test unless err is an error of arrowio that names the file.
func named(t testing.TB, path string, err error) {
	t.Helper()
	var e *status.Error
	if !errors.As(err, &e) {
		t.Fatalf("not a *status.Error: %v", err)
	}
	if e.Op != "arrowio" || !strings.Contains(e.Msg, path) || e.Attr("path") != path {
		t.Fatalf("error without the file's name: %v\n%s", err, e.Attr("stack"))
	}
	switch e.Code {
	case status.DataLoss, status.Unsupported:
	case status.InvalidArgument: // a list of another length than its field's rows
	case status.ResourceExhausted: // more than 2^40 records
	default:
		t.Fatalf("%v: %v", e.Code, err)
	}
}

// whole returns the part with the field's whole rows, with zeros for nulls.
func whole(field int, f source.Field) source.Part {
	box := make([][2]int, len(f.Shape))
	for d, n := range f.Shape {
		box[d] = [2]int{0, n}
	}
	return source.Part{Field: field, Boxes: [][][2]int{box}, Fill: zero(f.Type)}
}

func zero(t dtype.Type) any {
	switch t {
	case dtype.Bool:
		return false
	case dtype.Float16, dtype.BFloat16, dtype.Float32, dtype.Float64:
		return 0.0
	case dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Uint64:
		return uint64(0)
	}
	return int64(0)
}

// maxGathered is the most bytes that gatherField gathers, because a damaged file may
// declare rows of any size.
const maxGathered = 1 << 20

// gatherAll opens a file and gathers the first and last records of all fields. It
// returns one slice of bytes per field and the first error. The slice is nil for a
// field with an error or with rows that are too large.
func gatherAll(t testing.TB, path, io string) ([][]byte, error) {
	t.Helper()
	ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: io})
	if err != nil {
		return nil, err
	}
	records := ends(ds.Len())
	var out [][]byte
	var first error
	for i, f := range ds.Schema().Fields {
		dst, err := gatherField(ds, i, f, records)
		if err != nil {
			dst = nil
		}
		if first == nil {
			first = err
		}
		out = append(out, dst)
	}
	if err := ds.Close(); err != nil {
		t.Fatalf("%s: Close: %v", path, err)
	}
	return out, first
}

// ends returns the first and last 20 record numbers, and -1 for a row of zeros.
func ends(n int64) []int64 {
	records := []int64{-1}
	for i := int64(0); i < min(n, 20); i++ {
		records = append(records, i, n-1-i)
	}
	return records
}

func gatherField(ds *arrowio.Dataset, i int, f source.Field, records []int64) ([]byte, error) {
	if f.RowBytes() > maxGathered/len(records) {
		return nil, nil
	}
	if f.Ragged > 0 {
		return readRagged(ds, i, records)
	}
	g, err := ds.Gatherer([]source.Part{whole(i, f)})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	dst := make([]byte, len(records)*f.RowBytes())
	return dst, g.Gather(context.Background(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}})
}

// TestValidFilesAreRead: the tests below damage these files, so they must be valid.
func TestValidFilesAreRead(t *testing.T) {
	for name, data := range validFiles(t) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := gatherAll(t, path, "map"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRowsOfDecodedUnits: rows are the same in place and copied.
func TestRowsOfDecodedUnits(t *testing.T) {
	for name, data := range validFiles(t) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		in := func(prepare func(ds *arrowio.Dataset)) (out [][]byte) {
			ds, err := arrowio.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			prepare(ds)
			for i, f := range ds.Schema().Fields {
				dst, err := gatherField(ds, i, f, ends(ds.Len()))
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, dst)
			}
			return out
		}
		place, copied := in(func(*arrowio.Dataset) {}), in((*arrowio.Dataset).CopyRows)
		for i := range place {
			if !bytes.Equal(place[i], copied[i]) {
				t.Errorf("%s: field %d differs", name, i)
			}
		}
	}
}

// openCut cuts a file at every byte of its last 8 KiB, and at every 61st of the others. Each time,
// opening it is an error that names the file.
func openCut(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := len(data) - 1; n >= 0; n-- {
		if n < len(data)-8<<10 && n%61 > 0 {
			continue
		}
		if err := os.Truncate(path, int64(n)); err != nil {
			t.Fatal(err)
		}
		ds, err := arrowio.Open(path)
		if err == nil {
			ds.Close()
			t.Fatalf("%s: the first %d of %d bytes were opened", name, n, len(data))
		}
		named(t, path, err)
	}
}

// TestTruncatedFiles truncates a file and a stream, or all Arrow files with MESHFEED_DEEP=1.
func TestTruncatedFiles(t *testing.T) {
	for name, data := range validFiles(t) {
		few := name == "fixed.arrow" || name == "huggingface.stream"
		if filepath.Ext(name) != ".parquet" && (few || os.Getenv("MESHFEED_DEEP") != "") {
			openCut(t, name, data)
		}
	}
}

// TestMutatedFiles damages files at random. Both ways of reading a damaged file, "map"
// and "read", must return the same bytes, or both an error that names the file.
func TestMutatedFiles(t *testing.T) {
	count := random.Count(2000, 5000)
	files := validFiles(t)
	var inputs [][]byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		inputs = append(inputs, files[name])
	}
	const parts = 4 // run in parallel, because a part waits for the disk at times
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			r := random.New(t)
			path := filepath.Join(t.TempDir(), "damaged.arrow")
			accepted := 0
			for i := range count / parts {
				if checkDamaged(t, path, random.Damage(r, random.One(r, inputs...)), i%4 == 0) {
					accepted++
				}
			}
			t.Logf("%d accepted", accepted)
			if accepted == 0 || accepted == count/parts {
				t.Error("the test checks nothing")
			}
		})
	}
}

// checkDamaged writes and reads a damaged file and reports whether it was accepted. An
// accepted file is read both ways; a refused file only if both is true, to save time.
func checkDamaged(t *testing.T, path string, data []byte, both bool) bool {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the damaged file: %x", data)
		}
	}()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	mapped, err := gatherAll(t, path, "map")
	if err != nil {
		named(t, path, err)
		if !both {
			return false
		}
	}
	read, again := gatherAll(t, path, "read")
	if (err == nil) != (again == nil) {
		t.Fatalf("mapped: %v, read: %v", err, again)
	}
	for i := range mapped {
		if err == nil && !bytes.Equal(mapped[i], read[i]) {
			t.Fatalf("field %d differs mapped and read", i)
		}
	}
	return err == nil
}
