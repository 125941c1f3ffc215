package arrowio_test

import (
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
	"github.com/meshfeed/meshfeed/arrowio/records"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// mediaType is the type of images and audio of Hugging Face's datasets library.
var mediaType = arrow.StructOf(arrow.Field{Name: "bytes", Type: arrow.BinaryTypes.Binary, Nullable: true}, arrow.Field{Name: "path", Type: arrow.BinaryTypes.String, Nullable: true})

// media returns record batches with one column of encoded files.
func media(t *testing.T, typ arrow.DataType, json ...string) (batches []arrow.Record) {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ, Nullable: true}}, nil)
	for _, text := range json {
		column, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, array.NewRecord(schema, []arrow.Array{column}, int64(column.Len())))
	}
	return batches
}

var mediaRows = []string{
	`[{"bytes": "YWJj", "path": "a.png"}, null, {"bytes": "", "path": null}]`,
	`[{"bytes": "ZA==", "path": null}]`,
	`[null, {"bytes": "ZWY=", "path": "b.png"}]`,
}

const mediaWant = `x:binary?; "abc"; null; ""; "d"; null; "ef"`

// TestMedia reads encoded files from every kind of file, and runs the conformance suite.
func TestMedia(t *testing.T) {
	for name, options := range map[string][]ipc.Option{"file": nil, "stream": nil, "zstd": {ipc.WithZstd()}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.arrow")
			batches := media(t, mediaType, mediaRows...)
			writeIPC(t, path, name == "stream", batches[0].Schema(), batches, options...)
			for _, io := range []string{"map", "read"} {
				ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: io})
				if err != nil {
					t.Fatal(err)
				}
				checkMedia(t, ds)
				ds.Close()
			}
			sourcetest.Run(t, func(t *testing.T) source.Source { return opened(t, path) })
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r := random.New(t)
			for i := range 300 {
				checkDamaged(t, filepath.Join(t.TempDir(), "damaged.arrow"), random.Damage(r, data), i%4 == 0)
			}
		})
	}
	checkMedia(t, sourceOf(t, media(t, mediaType, mediaRows...)...))
	sliced := media(t, mediaType, mediaRows[0])[0].NewSlice(1, 3)
	if got := recordsOf(t, sourceOf(t, sliced)); got != `x:binary?; null; ""` {
		t.Error(got)
	}
}

// sourceOf returns the source of record batches.
func sourceOf(t *testing.T, batches ...arrow.Record) source.Source {
	t.Helper()
	src, err := records.New(batches[0].Schema(), batches, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src
}

func checkMedia(t *testing.T, ds source.Source) {
	t.Helper()
	if got := recordsOf(t, ds); got != mediaWant {
		t.Errorf("got  %s\nwant %s", got, mediaWant)
	}
	lengths := make([]int64, 6)
	if err := source.Lengths(t.Context(), ds, 0, 0, lengths); err != nil || !slices.Equal(lengths, []int64{3, -1, 0, 1, -1, 2}) {
		t.Errorf("lengths %v: %v", lengths, err)
	}
}

// TestMediaWithoutBytes: a path without bytes is an error that names the record. Data in
// memory have no such field, and say why.
func TestMediaWithoutBytes(t *testing.T) {
	batches := media(t, mediaType, `[null, {"bytes": "YQ==", "path": null}]`, `[null, {"bytes": null, "path": "a.png"}]`)
	const embed = `; put the files into the data: save_to_disk and push_to_hub of datasets do, as does ds.with_format("arrow").map(datasets.table.embed_table_storage, batched=True)`
	for _, options := range [][]ipc.Option{nil, {ipc.WithZstd()}} {
		path := filepath.Join(t.TempDir(), "x.arrow")
		writeIPC(t, path, false, batches[0].Schema(), batches, options...)
		ds := opened(t, path)
		want := "arrowio: " + path + `: field "x": record 3 has a path and no bytes` + embed
		_, err := readRagged(ds, 0, []int64{0, 1, 2, 3})
		if status.CodeOf(err) != status.Unsupported || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if err := source.Lengths(t.Context(), ds, 0, 0, make([]int64, 4)); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if _, err := readRagged(ds, 0, []int64{2, 1, 0}); err != nil {
			t.Error(err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.arrow")
	alone := media(t, mediaType, `[{"bytes": null, "path": "a.png"}]`) // no struct is null
	writeIPC(t, path, false, alone[0].Schema(), alone)
	if _, err := readRagged(opened(t, path), 0, []int64{0}); err == nil || !strings.Contains(err.Error(), "record 0 has a path and no bytes") {
		t.Error(err)
	}
	want := "record 3 has a path and no bytes" + embed
	if s := sourceOf(t, batches...).Schema(); len(s.Fields) != 0 || len(s.Skipped) != 1 || s.Skipped[0].Reason != want {
		t.Errorf("got  %+v\nwant %s", s, want)
	}
}

// TestOtherStructs: other structs are not fields.
func TestOtherStructs(t *testing.T) {
	member := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	content, path := member("bytes", arrow.BinaryTypes.Binary), member("path", arrow.BinaryTypes.String)
	for want, types := range map[string][]arrow.DataType{
		"a struct has no single type; store its children as columns of their own": {
			arrow.StructOf(content), arrow.StructOf(content, content), arrow.StructOf(content, path, member("more", arrow.PrimitiveTypes.Int8)),
			arrow.StructOf(member("bytes", arrow.BinaryTypes.String), path), arrow.StructOf(content, member("path", arrow.PrimitiveTypes.Int8)),
			arrow.StructOf(content, member("file", arrow.BinaryTypes.String)),
			arrow.StructOf(member("bytes", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.Binary}), path),
		},
		"lists of encoded files are not read; store each file as a record of its own": {arrow.ListOf(mediaType), arrow.FixedSizeListOf(1, mediaType)},
	} {
		for _, typ := range types {
			schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ}}, nil)
			file := filepath.Join(t.TempDir(), "x.arrow")
			writeIPC(t, file, false, schema, nil)
			if s := opened(t, file).Schema(); len(s.Skipped) != 1 || s.Skipped[0].Reason != want {
				t.Errorf("%v: got %+v, want %s", typ, s, want)
			}
		}
	}
}
