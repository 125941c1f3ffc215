package arrowio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
)

// column returns the content of a file of one column.
func column(t *testing.T, name string, typ arrow.DataType, values string, options ...ipc.Option) []byte {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: name, Type: typ}}, nil)
	return writeRecords(t, schema, []arrow.Record{array.NewRecord(schema, []arrow.Array{a}, -1)}, options...).data
}

// numbered returns a file with one number.
func numbered(t *testing.T, n int) []byte {
	return column(t, "x", arrow.PrimitiveTypes.Int8, fmt.Sprintf("[%d]", n))
}

// folder writes files, whose names may have directories, and changes into it.
func folder(t *testing.T, files map[string][]byte) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOrderOfFiles opens files in every way in which they can be named. Each holds
// one number, so the records show the order.
func TestOrderOfFiles(t *testing.T) {
	state := `{"_data_files": [{"filename": "data-00001-of-00002.arrow"}, {"filename": "data-00000-of-00002.arrow"}], "_indices_data_files": null, "_format_type": null}`
	folder(t, map[string][]byte{
		"a.arrow": numbered(t, 0), "b.arrow": numbered(t, 1),
		"z/b.arrow": numbered(t, 10), "y/b.arrow": numbered(t, 11), "y/c.arrow": numbered(t, 12), "z/a.arrow": numbered(t, 13),
		"odd[1].arrow": numbered(t, 20), "w/d.arrow": numbered(t, 40), "w/e.IPC": numbered(t, 41), "w/notes.txt": []byte("no Arrow"), "w/odd[1].arrow": numbered(t, 42),
		"hf/data-00000-of-00002.arrow": numbered(t, 30), "hf/data-00001-of-00002.arrow": numbered(t, 31),
		"hf/cache-1.arrow": numbered(t, 32), "hf/state.json": []byte(state), "hf/dataset_info.json": []byte("{}"),
		"h/n.arrow": numbered(t, 50), "h/_b.arrow": numbered(t, 51), "h/.c.arrow": numbered(t, 52), "h/_tmp/d.arrow": numbered(t, 53), "h/.git/e.arrow": numbered(t, 54),
		"spark/part-1": numbered(t, 60), "spark/part-0": numbered(t, 61), "spark/_SUCCESS": {}, "spark/.part-0.crc": []byte("crc"), "spark/notes.txt": []byte("no Arrow"),
		"short/a.pq": numbered(t, 70), "short/b.parq": numbered(t, 71), "short/c.FTR": numbered(t, 72), "short/part-0": numbered(t, 73),
		"hive/year=1/000000_0": numbered(t, 80), "hive/year=2/a.arrow": numbered(t, 81), "hive/year=2/LICENSE": []byte("no Arrow"), "hive/LICENSE": []byte("no Arrow"),
	})
	for _, c := range []struct {
		patterns []string
		want     []byte
	}{
		{[]string{"b.arrow", "a.arrow"}, []byte{1, 0}},
		{[]string{"?.arrow"}, []byte{0, 1}},
		{[]string{"*/[abc].arrow"}, []byte{13, 11, 10, 12}},
		{[]string{"z", "y"}, []byte{13, 10, 11, 12}},
		{[]string{"z/b.arrow", "?.arrow"}, []byte{10, 0, 1}},
		{[]string{"odd[1].arrow"}, []byte{20}},
		{[]string{"w"}, []byte{40, 41, 42}},
		{[]string{"w/*.ipc"}, []byte{41}},
		{[]string{"w/*.[iI]*"}, []byte{41}},
		{[]string{"w/e.IPC"}, []byte{41}},
		{[]string{"*/*.PARQ", "s*/[cx].ftr"}, []byte{71, 72}},
		{[]string{"hf"}, []byte{31, 30}},
		{[]string{"h"}, []byte{50}},
		{[]string{"h/*"}, []byte{50}},
		{[]string{"h/*.arrow"}, []byte{50}},
		{[]string{"h/_*.arrow"}, []byte{51}},
		{[]string{"h/.*.arrow", "h/_b.arrow"}, []byte{52, 51}},
		{[]string{"h/_tmp"}, []byte{53}},
		{[]string{"h/_*/*.arrow"}, []byte{53}},
		{[]string{"spark"}, []byte{61, 60}},
		{[]string{"short"}, []byte{70, 71, 72}},
		{[]string{"hive"}, []byte{80, 81}},
	} {
		ds, err := arrowio.Open(c.patterns[0], c.patterns[1:]...)
		if err != nil {
			t.Errorf("%q: %v", c.patterns, err)
			continue
		}
		var records []int64
		for i := range ds.Len() {
			records = append(records, i)
		}
		got, err := gatherField(ds, 0, ds.Schema().Fields[0], records)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.patterns, got, err, c.want)
		}
		ds.Close()
	}
}

// TestDuplicates names one file in several ways. The error names both ways; with
// duplicates "allow" its records come twice.
func TestDuplicates(t *testing.T) {
	folder(t, map[string][]byte{"a.arrow": numbered(t, 0), "b.arrow": numbered(t, 1), "copy.arrow": numbered(t, 0), "linked/a.arrow": numbered(t, 2)})
	for from, to := range map[string]string{"a.arrow": "link.arrow", "linked": "folder"} {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link("b.arrow", "hard.arrow"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		patterns []string
		want     string
		records  []byte
	}{
		{[]string{"a.arrow", "a.arrow"}, "a.arrow (path 1) and a.arrow (path 2)", []byte{0, 0}},
		{[]string{"a.arrow", "./a.arrow"}, "a.arrow (path 1) and ./a.arrow (path 2)", []byte{0, 0}},
		{[]string{"[ab].arrow", "b*"}, `b.arrow (path 1, "[ab].arrow") and b.arrow (path 2, "b*")`, []byte{0, 1, 1}},
		{[]string{"[al]*.arrow"}, `a.arrow (path 1, "[al]*.arrow") and link.arrow (path 1, "[al]*.arrow")`, []byte{0, 0}},
		{[]string{"b.arrow", "hard.arrow"}, "b.arrow (path 1) and hard.arrow (path 2)", []byte{1, 1}},
		{[]string{"linked", "a.arrow", "folder"}, `linked/a.arrow (path 1, "linked") and folder/a.arrow (path 3, "folder")`, []byte{2, 0, 2}},
		{[]string{"a.arrow", "copy.arrow"}, "", []byte{0, 0}}, // another file with the same content
	} {
		want := "arrowio: " + c.want + ` are the same file, so its records would come twice; leave one out, or pass duplicates="allow" (Go: Duplicates, C: MF_ALLOW_DUPLICATES)`
		ds, err := arrowio.OpenFiles(t.Context(), c.patterns, arrowio.Options{})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.patterns, err)
		case c.want == "":
			ds.Close()
		case err == nil || err.Error() != want || status.CodeOf(err) != status.InvalidArgument:
			t.Errorf("%q:\ngot  %v\nwant %s", c.patterns, err, want)
		}
		if ds, err = arrowio.OpenFiles(t.Context(), c.patterns, arrowio.Options{Duplicates: "allow"}); err != nil {
			t.Fatal(err)
		}
		got, err := gatherField(ds, 0, ds.Schema().Fields[0], []int64{0, 1, 2}[:ds.Len()])
		if err != nil || !bytes.Equal(got, c.records) {
			t.Errorf("%q: %v, %v, want %v", c.patterns, got, err, c.records)
		}
		ds.Close()
	}
}

// TestEmptyPaths opens paths that a program forgot to set.
func TestEmptyPaths(t *testing.T) {
	folder(t, map[string][]byte{"x.arrow": column(t, "x", arrow.PrimitiveTypes.Int64, "[1]")})
	for want, patterns := range map[string][]string{
		"arrowio: no files were named; name files, globs or directories":  nil,
		"arrowio: path 1 of 1 is empty; name files, globs or directories": {""},
		"arrowio: path 2 of 2 is empty; name files, globs or directories": {"x.arrow", ""},
	} {
		_, err := arrowio.OpenFiles(t.Context(), patterns, arrowio.Options{})
		if status.CodeOf(err) != status.InvalidArgument || err.Error() != want {
			t.Errorf("%q: %v", patterns, err)
		}
	}
}

// TestOptionsRefused checks the messages for options that are not valid.
func TestOptionsRefused(t *testing.T) {
	folder(t, map[string][]byte{"x.arrow": column(t, "x", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64), "[[1,2]]")})
	for _, c := range []struct {
		o    arrowio.Options
		want string
	}{
		{arrowio.Options{Duplicates: "once"}, `arrowio: duplicates "once" is not a way to treat files that come twice; use "refuse" or "allow"`},
		{arrowio.Options{IO: "fast"}, `arrowio: io "fast" is not a way to read files; use "auto", "map" or "read"`},
		{arrowio.Options{Shapes: map[string][]int{"y": {2}}}, `arrowio: a shape is given for "y", but there is no such column; there are "x"`},
		{arrowio.Options{Shapes: map[string][]int{"x": {3}}}, `arrowio: field "x" has rows of 2 elements in dimension 0 by its type, where shape [3] has 3; leave its shape out, or correct it`},
		{arrowio.Options{Shapes: map[string][]int{"x": {2, 2}}}, `arrowio: field "x" has rows of 2 values, but shape [2 2] needs 4; leave its shape out, or correct it`},
	} {
		_, err := arrowio.OpenFiles(t.Context(), []string{"x.arrow"}, c.o)
		if err == nil || err.Error() != c.want || status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%+v:\n got %v\nwant %s", c.o, err, c.want)
		}
	}
	if _, err := arrowio.OpenFiles(t.Context(), nil, arrowio.Options{}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("no files: %v", err)
	}
}

// TestFilesDescribed checks the facts that inspect prints about each file.
func TestFilesDescribed(t *testing.T) {
	packed := column(t, "x", arrow.PrimitiveTypes.Int64, "["+strings.Repeat("1,", 99)+"1]", ipc.WithZstd())
	plain := column(t, "x", arrow.PrimitiveTypes.Int64, "[1,2]")
	folder(t, map[string][]byte{"packed.arrow": packed, "plain.arrow": plain})
	ds, err := arrowio.Open("packed.arrow", "plain.arrow")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	want := []arrowio.FileInfo{
		{Path: "packed.arrow", Format: "file", Records: 100, Batches: 1, LargestBatch: 100, Bytes: int64(len(packed)), Compression: "zstd"},
		{Path: "plain.arrow", Format: "file", Records: 2, Batches: 1, LargestBatch: 2, Bytes: int64(len(plain))},
	}
	if got := ds.Files(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// refused fails unless the patterns give exactly this error.
func refused(t *testing.T, patterns []string, code status.Code, want string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ds, err := arrowio.Open(patterns[0], patterns[1:]...)
	if err == nil {
		ds.Close()
		t.Errorf("%q was opened", patterns)
		return
	}
	if status.CodeOf(err) != code {
		t.Errorf("%q: %v instead of %v", patterns, status.CodeOf(err), code)
	}
	if found := errors.Is(err, fs.ErrNotExist); found != (code == status.NotFound) {
		t.Errorf("%q: errors.Is finds fs.ErrNotExist: %v", patterns, found)
	}
	if got := strings.ReplaceAll(err.Error(), here, "HERE"); got != "arrowio: "+want {
		t.Errorf("%q:\n got %s\nwant arrowio: %s", patterns, got, want)
	}
}

// TestTwoFormats: files that differ in their suffixes alone are probably one table.
func TestTwoFormats(t *testing.T) {
	folder(t, map[string][]byte{"c/a.arrow": numbered(t, 1), "c/a.feather": numbered(t, 2), "c/a.txt": nil, "b/a.arrow": numbered(t, 3)})
	want := `arrowio: c/a.arrow (path 1, "c") and c/a.feather (path 1, "c") have one name and two formats, so their records probably come twice; leave one out, or pass duplicates="allow" (Go: Duplicates, C: MF_ALLOW_DUPLICATES)`
	if _, err := arrowio.OpenFiles(t.Context(), []string{"c"}, arrowio.Options{}); status.CodeOf(err) != status.InvalidArgument || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	for _, patterns := range [][]string{{"c/a.arrow", "b/a.arrow"}, {"c/a.arrow", "c/a.feather"}, {"c/a.arrow", "c/a.arrow"}} {
		ds, err := arrowio.OpenFiles(t.Context(), patterns, arrowio.Options{Duplicates: "allow"})
		if err != nil || ds.Len() != 2 {
			t.Fatalf("%v: %v", patterns, err)
		}
		ds.Close()
	}
	ds, err := arrowio.Open("c/a.arrow", "b/a.arrow")
	if err != nil {
		t.Fatal(err)
	}
	ds.Close()
}
