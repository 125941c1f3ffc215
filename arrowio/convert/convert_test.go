package convert

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// input is a file of the tests of arrowio with 23 records in three row groups.
const input = "../testdata/parquet/ragged.parquet"

// contents returns the bytes of all files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

func convert(t *testing.T, dir string, o Options) Report {
	t.Helper()
	report, err := Run(t.Context(), []string{input}, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// options convert the columns of the input in files of some rows.
func options(t *testing.T, rows int64) Options {
	t.Helper()
	ds, err := arrowio.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	return Options{Files: arrowio.Options{Columns: namesOf(ds.Schema())}, RowsPerFile: rows}
}

// TestParts converts in any number of parts, in any order, and compares the bytes with one run.
func TestParts(t *testing.T) {
	r, o := random.New(t), options(t, 7)
	dir := filepath.Join(t.TempDir(), "whole")
	whole := convert(t, dir, o)
	want := contents(t, dir)
	if whole.Part.Written != whole.Files || len(want) != whole.Files+1 || whole.Files < 4 {
		t.Fatalf("%+v, %d files", whole, len(want))
	}
	for _, parts := range []int{1, 2, 3, whole.Files, 2*whole.Files + 1} {
		dir, written := t.TempDir(), 0
		for done, i := range r.Perm(parts) {
			o.Part, o.Parts = i+1, parts
			report := convert(t, dir, o)
			if written += report.Part.Written; report.Part.Present != 0 || len(report.Missing) != whole.Files-written {
				t.Errorf("part %d of %d: %+v", i+1, parts, report)
			}
			if ds, err := arrowio.Open(dir); (err == nil) != (written == whole.Files) {
				t.Errorf("after %d of %d parts: %v", done+1, parts, err)
			} else if err == nil {
				ds.Close()
			}
		}
		if got := contents(t, dir); !maps.Equal(got, want) {
			t.Errorf("%d parts: other bytes: %v", parts, slices.Sorted(maps.Keys(got)))
		}
	}
}

// TestResumed ends runs at random places. The next one continues, writes no file a second time and
// removes what was left.
func TestResumed(t *testing.T) {
	r, o := random.New(t), options(t, 1)
	dir := t.TempDir()
	whole := convert(t, dir, o)
	want := contents(t, dir)
	dir = t.TempDir()
	written, runs := 0, 0
	for err := error(context.Canceled); err != nil; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		calls := written + r.IntN(5) // the first calls are for files that are there
		o.Progress = func(_, _ int64) {
			if calls--; calls < 0 {
				cancel()
			}
		}
		var report Report
		report, err = Run(ctx, []string{input}, dir, o)
		cancel()
		if written += report.Part.Written; written == whole.Files {
			break // it may have been canceled after the last file
		}
		if !errors.Is(err, context.Canceled) || runs > 100 {
			t.Fatal(err)
		}
		scratch := "." + nameOf(written, whole.Files) + ".0123456789abcdef" // as a run that is killed leaves it
		if err := os.WriteFile(filepath.Join(dir, scratch), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if runs < 2 {
		t.Error("no run was ended early")
	}
	if written != whole.Files {
		t.Errorf("%d files were written, of %d", written, whole.Files)
	}
	if got := contents(t, dir); !maps.Equal(got, want) {
		t.Errorf("other bytes: %v", slices.Sorted(maps.Keys(got)))
	}
	o.Progress = nil
	if report := convert(t, dir, o); report.Part.Written != 0 || report.Part.Present != whole.Files {
		t.Errorf("once more: %+v", report)
	}
}

// TestTogether runs the same conversion several times at once. All succeed.
func TestTogether(t *testing.T) {
	o := options(t, 7)
	alone, dir := t.TempDir(), t.TempDir()
	convert(t, alone, o)
	var done sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		done.Go(func() { _, errs[i] = Run(context.Background(), []string{input}, dir, o) })
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(contents(t, dir), contents(t, alone)) {
		t.Error("other bytes")
	}
}

// TestRefused tries what a conversion cannot do. It changes no file.
func TestRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("in/a.parquet", contentsOf(t, "ragged.parquet"))
	write("in/b.parquet", contentsOf(t, "ragged.parquet"))
	write("other.parquet", contentsOf(t, "plain.parquet"))
	write("full/notes.txt", "mine")
	write("file", "")
	if err := os.Symlink("in", "link"); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), []string{"in"}, "done", Options{RowsPerFile: 5}); err != nil {
		t.Fatal(err)
	}
	before := contents(t, "done")
	for _, c := range []struct {
		in, out string
		o       Options
		code    status.Code
		want    string
	}{
		{"in", "full", Options{}, status.InvalidArgument, "full: the output folder is not empty: it holds notes.txt; name a new folder"},
		{"in", "in", Options{}, status.InvalidArgument, "in: the output folder belongs to the input in; name a folder that lies outside of it"},
		{"in", "in/deep/out", Options{}, status.InvalidArgument, "in/deep/out: the output folder belongs to the input in; name a folder that lies outside of it"},
		{"in", "link/out", Options{}, status.InvalidArgument, "link/out: the output folder belongs to the input in; name a folder that lies outside of it"},
		{"*", "new", Options{}, status.InvalidArgument, "new: the output folder belongs to the input *; name a folder that lies outside of it"},
		{"in/*.parquet", "in", Options{}, status.InvalidArgument, "in: the input in/a.parquet lies in the output folder; name a folder of its own for the output"},
		{"in", "file", Options{}, status.IO, "file: not a directory"},
		{"in", "file/new", Options{}, status.IO, "file/new: not a directory"},
		{"in", "new", Options{Files: arrowio.Options{Columns: []string{"none"}}}, status.NotFound, `in/a.parquet: there is no column "none"; the columns are `},
		{"in", "new", Options{Files: arrowio.Options{Columns: []string{"text", "text"}}}, status.InvalidArgument, `the column "text" is named twice`},
		{"in", "new", Options{Files: arrowio.Options{Columns: []string{}}}, status.InvalidArgument, "no columns are chosen; name at least one, or choose nothing for all"},
		{"in", "new", Options{Part: 3, Parts: 2}, status.InvalidArgument, "part 3 of 2 does not exist; parts count from 1: the first of 2 is 1/2"},
		{"in", "new", Options{Part: 1}, status.InvalidArgument, "part 1 of 0 does not exist; parts count from 1: the first of 1 is 1/1"},
		{"in", "s3://bucket/out", Options{}, status.Unsupported, "s3://bucket/out is an address, and a conversion writes to a folder of this machine; name a folder"},
		{"in", "new", Options{RowsPerFile: -1}, status.InvalidArgument, "-1 rows per file; give 1 or more"},
		{"in", "done", Options{RowsPerFile: 6}, status.Incompatible, "done: the folder holds a conversion with other rows per file: 5 there, 6 here; name a new folder, or continue with meshfeed convert in --rows-per-file 5 done"},
		{"other.parquet", "new", Options{}, status.Unsupported, `the column "price" (decimal128(21, 2)) cannot be converted: arrays have no decimal type; cast it to float64 or to an integer; convert the other columns: --columns int8,uint16,int32,uint64,float16,float32,float64,yes,text`},
		{"other.parquet", "new", Options{Files: arrowio.Options{Columns: []string{"int8", "price"}}}, status.Unsupported, `column "price" of type decimal128(21, 2) cannot be an array: arrays have no decimal type`},
		{"in", "done", Options{}, status.Incompatible, "done: the folder holds a conversion with other rows per file: 5 there, not given here; "},
		{"in/a.parquet", "done", Options{RowsPerFile: 5}, status.Incompatible, "done: the folder holds a conversion with another input: "},
		{"other.parquet", "done", Options{RowsPerFile: 5, Files: arrowio.Options{Columns: []string{"int8"}}}, status.Incompatible, "done: the folder holds a conversion with another input: "},
	} {
		_, err := Run(t.Context(), []string{c.in}, c.out, c.o)
		if status.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s with %+v:\ngot  %v\nwant %v: %s", c.in, c.out, c.o, err, c.code, c.want)
		}
	}
	if !maps.Equal(contents(t, "done"), before) {
		t.Error("the folder has changed")
	}
	if _, err := os.Stat("new"); err == nil {
		t.Error("a refused conversion made its folder")
	}
}

func contentsOf(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(home, "../testdata/parquet", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// home is the folder of the package.
var home, _ = os.Getwd()

// TestMaskedColumns compares the columns that a run names with the columns of the manifest.
func TestMaskedColumns(t *testing.T) {
	o := options(t, 0)
	dir := t.TempDir()
	o.Files.Columns = []string{o.Files.Columns[1], o.Files.Columns[0]}
	convert(t, dir, o)
	ds, err := arrowio.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if got := namesOf(ds.Schema()); !slices.Equal(got, o.Files.Columns) {
		t.Errorf("%q instead of %q", got, o.Files.Columns)
	}
	o.Files.Columns = o.Files.Columns[:1]
	if _, err := Run(t.Context(), []string{input}, dir, o); status.CodeOf(err) != status.Incompatible || !strings.Contains(err.Error(), "the folder holds a conversion with other columns") {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, manifest.Name))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := manifest.Parse(text, dir); err != nil || len(m.Columns) != 2 || len(m.Files) != 1 {
		t.Errorf("%v: %s", err, text)
	}
}

// TestNothingIsCached leaves the folder of decoded units alone.
func TestNothingIsCached(t *testing.T) {
	o := options(t, 0)
	o.Files.Cache = filepath.Join(t.TempDir(), "units")
	convert(t, t.TempDir(), o)
	if _, err := os.Stat(o.Files.Cache); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the conversion made the folder: %v", err)
	}
}

// TestAddress: an address is no path, so it does not lie in the working directory.
func TestAddress(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(home, "../testdata/parquet"))))
	defer server.Close()
	t.Chdir(t.TempDir())
	o := Options{Files: arrowio.Options{Columns: []string{"text"}, CacheHome: t.TempDir()}}
	if report, err := Run(t.Context(), []string{server.URL + "/ragged.parquet"}, ".", o); err != nil || report.Records != 23 {
		t.Errorf("%+v, %v", report, err)
	}
}
