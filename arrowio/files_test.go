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

// folder writes files to a temporary folder and changes into it. Names of files may have
// directories.
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
