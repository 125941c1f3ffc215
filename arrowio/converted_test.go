package arrowio_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/convert"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestConverted converts files of all formats, with every type, and compares each row with
// the input. Arrow's library reads the output, too.
func TestConverted(t *testing.T) {
	r := random.New(t)
	inputs := map[string]string{}
	for _, how := range []struct {
		name    string
		stream  bool
		options []ipc.Option
	}{{"file", false, nil}, {"stream", true, nil}, {"lz4", false, []ipc.Option{ipc.WithLZ4()}}} {
		if random.Race && how.name != "lz4" {
			continue
		}
		path := temp(t, how.name+".arrow")
		save(t, path, how.stream, everything, []int{r.IntN(40), 0, 1, r.IntN(40)}, r.Uint64(), how.options...)
		inputs[how.name] = path
		path = temp(t, how.name+"-ragged.arrow")
		writeIPC(t, path, how.stream, raggedSchema, raggedBatches(r, how.stream, r.IntN(40), 0, r.IntN(40)), how.options...)
		inputs["ragged "+how.name] = path
	}
	empty := temp(t, "empty.arrow")
	writeIPC(t, empty, false, raggedSchema, nil)
	inputs["empty"] = empty
	inputs["partitions"] = t.TempDir()
	for _, key := range []string{"city=Rome/year=1", "city=Oslo/year=__HIVE_DEFAULT_PARTITION__"} {
		dir := filepath.Join(inputs["partitions"], key)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(dir, "x.arrow"), false, everything, []int{r.IntN(20), r.IntN(20)}, r.Uint64())
	}
	for _, path := range parquetFiles(t) {
		inputs[filepath.Base(path)] = path
	}
	for name, path := range inputs {
		t.Run(name, func(t *testing.T) {
			options := arrowio.Options{}
			if !strings.Contains(name, "ragged") && !strings.Contains(name, "parquet") && name != "empty" {
				options.Shapes = shapes
			}
			in, err := arrowio.OpenFiles(t.Context(), []string{path}, options)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			o := convert.Options{Files: options, RowsPerFile: r.Int64N(30)}
			for _, f := range in.Schema().Fields {
				o.Files.Columns = append(o.Files.Columns, f.Name)
			}
			out := t.TempDir()
			report, err := convert.Run(t.Context(), []string{path}, out, o)
			if err != nil || report.Missing != nil || report.Part.Written != report.Files || report.Records != in.Len() {
				t.Fatalf("%v: %+v", err, report)
			}
			converted, err := arrowio.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer converted.Close()
			if _, err := converted.Verify(t.Context(), arrowio.VerifyOptions{}); err != nil {
				t.Error(err)
			}
			sameDatasets(t, converted, in)
			for _, f := range converted.Files() {
				if f.Compression != "" || f.Format != "file" {
					t.Errorf("%+v", f)
				}
				rows := int64(0)
				for _, b := range readBack(t, f.Path) {
					rows += b.NumRows()
				}
				if rows != f.Records {
					t.Errorf("%s: Arrow's library reads %d rows of %d", f.Path, rows, f.Records)
				}
			}
		})
	}
}

// sameDatasets compares fields and rows. A dictionary or view of text becomes text.
func sameDatasets(t *testing.T, got, want *arrowio.Dataset) {
	t.Helper()
	fields := append([]source.Field{}, want.Schema().Fields...)
	for i := range fields {
		logical := strings.TrimPrefix(fields[i].Logical, "dictionary<values=")
		logical, _, _ = strings.Cut(logical, ", indices=")
		fields[i].Logical = strings.TrimSuffix(logical, "_view")
		fields[i].Computed = false // the conversion stores the fields of directories
	}
	for i, f := range got.Schema().Fields {
		fields[i].HasNulls, fields[i].Lists, fields[i].Computed = f.HasNulls, f.Lists, false // the conversion counts nulls, and makes fixed-size lists
		if fields[i].Nullable && !f.Nullable {                                               // the metadata of the input do not exclude nulls
			fields[i].Nullable = false
		}
		if len(fields) != len(got.Schema().Fields) || !reflect.DeepEqual(f, fields[i]) {
			t.Fatalf("field %d is %+v, want %+v", i, f, fields[i])
		}
	}
	if got.Len() != want.Len() {
		t.Fatalf("%d records, want %d", got.Len(), want.Len())
	}
	gotRows, wantRows := readerOf(t, got), readerOf(t, want)
	for record := range got.Len() {
		for i, f := range fields {
			g, w := spanOf(t, gotRows, i, record), spanOf(t, wantRows, i, record)
			if f.Ragged == 0 && !slices.Contains(w.Nulls, false) && w.Nulls != nil { // a fixed-size list of nulls is null
				w.Row, w.Nulls = nil, nil
			}
			if g.Row == nil != (w.Row == nil) || !bytes.Equal(g.Row, w.Row) || !reflect.DeepEqual(g.Nulls, w.Nulls) || !reflect.DeepEqual(g.Lists, w.Lists) {
				t.Fatalf("field %q, record %d: got %+v, want %+v", f.Name, record, g, w)
			}
		}
	}
}

// readerOf returns a reader of all fields, which the end of the test closes.
func readerOf(t *testing.T, src source.Source) source.Reader {
	t.Helper()
	var fields []int
	for i := range src.Schema().Fields {
		fields = append(fields, i)
	}
	r, err := src.Reader(fields)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// spanOf returns a copy of a row.
func spanOf(t *testing.T, r source.Reader, field int, record int64) source.Span {
	t.Helper()
	spans := []source.Span{{Field: field, Record: record}}
	err := r.Read(t.Context(), source.Draw{}, spans, func() error {
		s := &spans[0]
		if s.Row != nil {
			s.Row = append([]byte{}, s.Row...)
		}
		s.Nulls = append([]bool(nil), s.Nulls...)
		for i := range s.Lists {
			s.Lists[i] = append([]int64(nil), s.Lists[i]...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return spans[0]
}

// TestConvertedMetadata: a conversion keeps the metadata of the schema, and of columns
// that keep their type.
func TestConvertedMetadata(t *testing.T) {
	tensor := arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{"arrow.fixed_shape_tensor", `{"shape":[2,3],"dim_names":["H","W"]}`})
	uuid := arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata", "note"}, []string{"arrow.uuid", "", "kept"})
	list := arrow.NewMetadata([]string{"ARROW:extension:name", "note"}, []string{"datasets.features.features.Array2DExtensionType", "kept"})
	about := arrow.NewMetadata([]string{"huggingface"}, []string{`{"info": {"features": {"label": {"_type": "ClassLabel", "names": ["a", "b"]}}}}`})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "tensor", Type: arrow.FixedSizeListOf(6, arrow.PrimitiveTypes.Float32), Metadata: tensor},
		{Name: "id", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}, Metadata: uuid},
		{Name: "nested", Type: arrow.ListOf(arrow.FixedSizeListOf(2, &arrow.FixedSizeBinaryType{ByteWidth: 3})), Metadata: list},
		{Name: "time", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{Name: "words", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.LargeString}},
	}, &about)
	in, out := temp(t, "in.arrow"), t.TempDir()
	writeIPC(t, in, false, schema, nil)
	o := convert.Options{Files: arrowio.Options{Shapes: map[string][]int{"nested": {4, 2, 3}}}}
	if _, err := convert.Run(t.Context(), []string{in}, out, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "rows-00000-of-00001.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	got := r.Schema()
	if m := got.Metadata(); m.String() != about.String() {
		t.Errorf("the metadata are %v", m)
	}
	for i, want := range []string{
		"fixed_size_list<item: float32, nullable>[6] " + tensor.String(),
		"fixed_size_binary[16] " + uuid.String(),
		`fixed_size_list<item: fixed_size_list<item: fixed_size_binary[3], nullable>[2], nullable>[4] ["note": "kept"]`,
		"timestamp[us, tz=UTC] []",
		"large_utf8 []",
	} {
		if text := fmt.Sprint(got.Field(i).Type, " ", got.Field(i).Metadata); text != want {
			t.Errorf("field %d is %s, want %s", i, text, want)
		}
	}
	ds, err := arrowio.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if s := ds.Schema().Fields; !reflect.DeepEqual(s[0].Shape, []int{2, 3}) || !reflect.DeepEqual(s[2].Shape, []int{4, 2, 3}) {
		t.Errorf("%+v", s)
	}
}

// TestUnfinishedConversions opens folders that a manifest does not fit.
func TestUnfinishedConversions(t *testing.T) {
	folder(t, map[string][]byte{"in.arrow": numbered(t, 1), "more.arrow": numbered(t, 2), "last.arrow": numbered(t, 3)})
	inputs := []string{"in.arrow", "more.arrow", "last.arrow"}
	convertPart := func(dir string, part, parts int) {
		t.Helper()
		if _, err := convert.Run(context.Background(), inputs, dir, convert.Options{RowsPerFile: 1, Part: part, Parts: parts}); err != nil {
			t.Fatal(err)
		}
	}
	convertPart("out", 3, 3)
	refused(t, []string{"out"}, status.NotFound, "out: the conversion is not finished, and lacks 2 of 3 files: rows-00000-of-00003.arrow, rows-00001-of-00003.arrow; if all its processes have ended, this converts the rest: meshfeed convert in.arrow more.arrow last.arrow --rows-per-file 1 out")
	convertPart("out", 1, 1)
	ds, err := arrowio.Open("out")
	if err != nil || ds.Len() != 3 {
		t.Fatal(err)
	}
	ds.Close()

	again := func(want string) {
		t.Helper()
		_, err := convert.Run(context.Background(), inputs, "out", convert.Options{RowsPerFile: 1})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got  %v\nwant … %s", err, want)
		}
	}
	if err := os.Truncate("out/rows-00001-of-00003.arrow", 100); err != nil {
		t.Fatal(err)
	}
	again("remove this file, and run the same command, which writes it again")
	if err := os.Remove("out/rows-00001-of-00003.arrow"); err != nil {
		t.Fatal(err)
	}
	convertPart("out", 1, 1)
	replace := func(value int) {
		t.Helper()
		if err := os.WriteFile("more.arrow", numbered(t, value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(9)
	again("now; convert it into a new folder")
	replace(2)
	if _, err = arrowio.OpenFiles(t.Context(), []string{"out"}, arrowio.Options{Split: "train"}); status.CodeOf(err) != status.NotFound {
		t.Errorf("a split: %v", err)
	}
	if err := os.WriteFile("out/rows-00001-of-00003.arrow", column(t, "x", arrow.PrimitiveTypes.Int8, "[7, 8]"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"out"}, status.DataLoss, "out/rows-00001-of-00003.arrow: the file has 2 records, but meshfeed-manifest.json says 1; copy the directory again, or convert the data again")
	for text, want := range map[string]string{
		`{"meshfeed_manifest": 2}`: "out/meshfeed-manifest.json: the manifest has version 2, and only 1 is read; read it with the meshfeed that wrote it, or convert the data again",
		`{"meshfeed_manifest": 1, "records": 1, "files": [{"name": "../in.arrow", "records": 1}]}`: `out/meshfeed-manifest.json: "../in.arrow" is not the name of a file, or is listed twice; copy the directory again, or convert the data again`,
		`{"meshfeed_manifest": 1, "records": 2, "files": [{"name": "in.arrow", "records": 1}]}`:    "out/meshfeed-manifest.json: 1 of 2 records are in the files that it lists; copy the directory again, or convert the data again",
		`{`: "out/meshfeed-manifest.json: unexpected end of JSON input; copy the directory again, or convert the data again",
	} {
		if err := os.WriteFile("out/meshfeed-manifest.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code := status.DataLoss
		if strings.Contains(text, ": 2}") {
			code = status.Unsupported
		}
		refused(t, []string{"out"}, code, want)
	}
}
