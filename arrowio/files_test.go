package arrowio_test

import (
	"bytes"
	"fmt"
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

// column is the content of a file of one column.
func column(t *testing.T, name string, typ arrow.DataType, values string, options ...ipc.Option) []byte {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: name, Type: typ}}, nil)
	return writeRecords(t, schema, []arrow.Record{array.NewRecord(schema, []arrow.Array{a}, -1)}, options...).data
}

// numbered is a file with the one number.
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

// TestOrderOfFiles opens files in every way in which they can be named. Each
// holds one number, so that the records tell the order.
func TestOrderOfFiles(t *testing.T) {
	state := `{"_data_files": [{"filename": "data-00001-of-00002.arrow"}, {"filename": "data-00000-of-00002.arrow"}], "_indices_data_files": null, "_format_type": null}`
	folder(t, map[string][]byte{
		"a.arrow": numbered(t, 0), "b.arrow": numbered(t, 1), "c.ipc": numbered(t, 2), "notes.txt": []byte("no Arrow"),
		"z/b.arrow": numbered(t, 10), "y/b.arrow": numbered(t, 11), "y/c.arrow": numbered(t, 12), "z/a.arrow": numbered(t, 13),
		"odd[1].arrow":                 numbered(t, 20),
		"hf/data-00000-of-00002.arrow": numbered(t, 30), "hf/data-00001-of-00002.arrow": numbered(t, 31),
		"hf/cache-1.arrow": numbered(t, 32), "hf/state.json": []byte(state), "hf/dataset_info.json": []byte("{}"),
	})
	for _, c := range []struct {
		patterns []string
		want     []byte
	}{
		{[]string{"b.arrow", "a.arrow"}, []byte{1, 0}},
		{[]string{"a.arrow", "a.arrow"}, []byte{0, 0}},
		{[]string{"?.arrow"}, []byte{0, 1}},
		{[]string{"*/[abc].arrow"}, []byte{13, 11, 10, 12}},
		{[]string{"z", "y"}, []byte{13, 10, 11, 12}},
		{[]string{"z/b.arrow", "?.arrow"}, []byte{10, 0, 1}},
		{[]string{"odd[1].arrow"}, []byte{20}},
		{[]string{"."}, []byte{0, 1, 2, 20}},
		{[]string{"hf"}, []byte{31, 30}},
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

// TestOpenRefused has the whole message of everything that cannot be opened.
func TestOpenRefused(t *testing.T) {
	number := column(t, "x", arrow.PrimitiveTypes.Int64, "[1]")
	folder(t, map[string][]byte{
		"x.arrow": number, "float.arrow": column(t, "x", arrow.PrimitiveTypes.Float32, "[1]"),
		"y.arrow":   column(t, "y", arrow.PrimitiveTypes.Int64, "[1]"),
		"p.parquet": []byte("PAR1 and more of it PAR1"), "empty.arrow": nil, "text.arrow": []byte("name,age\n"),
		"none/readme.txt": nil, "parquet/a.parquet": nil, "deep/sub/x.arrow": number,
		"dict/dataset_dict.json": []byte(`{"splits": ["train", "test"]}`), "dict/train/state.json": []byte("{}"),
		"mapped/state.json": []byte(`{"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{"filename": "i.arrow"}]}`),
		"escape/state.json": []byte(`{"_data_files": [{"filename": "../x.arrow"}]}`),
		"broken/state.json": []byte(`{"_data_files": [`),
		"gone/state.json":   []byte(`{"_data_files": [{"filename": "gone.arrow"}]}`),
	})
	const (
		rewrite   = "; write it as an Arrow IPC file, for example with pyarrow.ipc.new_file"
		oneSchema = "; all files of a dataset need the same columns in the same order; open them apart, or write them again with one schema"
		toIPC     = `write an Arrow IPC file from it, with pyarrow: import pyarrow.feather, pyarrow.parquet; pyarrow.feather.write_feather(pyarrow.parquet.read_table("in.parquet"), "out.arrow", compression="uncompressed")`
	)
	for _, c := range []struct {
		patterns []string
		code     status.Code
		want     string
	}{
		{[]string{"missing.arrow"}, status.NotFound, "missing.arrow: there is no such file or directory"},
		{[]string{"missing-*.arrow"}, status.NotFound, `no file matches "missing-*.arrow"`},
		{[]string{"[", "x.arrow"}, status.InvalidArgument, `"[" is not a glob: syntax error in pattern`},
		{[]string{"p.parquet"}, status.Unsupported, "p.parquet: this is no Arrow IPC file or stream: it is a Parquet file; " + toIPC},
		{[]string{"empty.arrow"}, status.DataLoss, "empty.arrow: this is no Arrow IPC file or stream: it is empty" + rewrite},
		{[]string{"text.arrow"}, status.DataLoss, `text.arrow: this is no Arrow IPC file or stream: it begins with "name,age"` + rewrite},
		{[]string{"none"}, status.NotFound, "none: the directory has no Arrow file (.arrow, .arrows, .ipc, .feather); name the files"},
		{[]string{"parquet"}, status.NotFound, "parquet: the directory has no Arrow file (.arrow, .arrows, .ipc, .feather); " + toIPC},
		{[]string{"deep"}, status.NotFound, "deep: the directory has no Arrow file (.arrow, .arrows, .ipc, .feather); files in subdirectories are taken by a glob: deep/*/*.arrow"},
		{[]string{"dict"}, status.InvalidArgument, "dict: this is a dictionary of datasets with the splits train, test; open one of them: dict/train"},
		{[]string{"mapped"}, status.Unsupported, "mapped: the dataset was saved with an indices mapping; call flatten_indices() before save_to_disk()"},
		{[]string{"escape"}, status.DataLoss, `escape: state.json names a file outside of the directory: "../x.arrow"`},
		{[]string{"broken"}, status.DataLoss, "broken/state.json: unexpected end of JSON input"},
		{[]string{"gone"}, status.NotFound, "gone/gone.arrow: there is no such file or directory"},
		{[]string{"x.arrow", "float.arrow"}, status.Incompatible, `float.arrow: field "x" is float32, but int64 in x.arrow` + oneSchema},
		{[]string{"x.arrow", "y.arrow"}, status.Incompatible, `y.arrow: column 0 is "y", but "x" in x.arrow` + oneSchema},
		{[]string{"/dev/null"}, status.Unsupported, "/dev/null: this is no regular file (Dcrw-rw-rw-); rows are read in any order; copy a pipe or device into a file first"},
	} {
		ds, err := arrowio.Open(c.patterns[0], c.patterns[1:]...)
		if err == nil {
			ds.Close()
			t.Errorf("%q was opened", c.patterns)
			continue
		}
		if status.CodeOf(err) != c.code {
			t.Errorf("%q: %v instead of %v", c.patterns, status.CodeOf(err), c.code)
		}
		if got := strings.TrimPrefix(err.Error(), "arrowio: "); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.patterns, got, c.want)
		}
	}
}

// TestOptionsRefused: what cannot be asked for.
func TestOptionsRefused(t *testing.T) {
	folder(t, map[string][]byte{"x.arrow": column(t, "x", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64), "[[1,2]]")})
	for _, c := range []struct {
		o    arrowio.Options
		want string
	}{
		{arrowio.Options{IO: "fast"}, `arrowio: io="fast" is not a way to read files; use "auto", "map" or "read"`},
		{arrowio.Options{Shapes: map[string][]int{"y": {2}}}, `arrowio: a shape is given for "y", but there is no such column`},
		{arrowio.Options{Shapes: map[string][]int{"x": {3}}}, `arrowio: field "x" has rows of shape [2] by its type, not [3]; leave its shape out, or correct it`},
		{arrowio.Options{Shapes: map[string][]int{"x": {2, 2}}}, `arrowio: field "x" has rows of 1 dimensions, not 2; leave its shape out, or correct it`},
	} {
		_, err := arrowio.OpenFiles([]string{"x.arrow"}, c.o)
		if err == nil || err.Error() != c.want || status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%+v:\n got %v\nwant %s", c.o, err, c.want)
		}
	}
	if _, err := arrowio.OpenFiles(nil, arrowio.Options{}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("no files: %v", err)
	}
}

// TestFilesDescribed: what inspect shows of each file.
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
	if slow := ds.Slow(); len(slow) != 1 || slow[0].Name != "x" || !strings.Contains(slow[0].Reason, "zstd") {
		t.Errorf("slow fields: %+v", slow)
	}
}
