package arrowio_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// TestPartitions opens directories with keys and values as names. Each file holds one
// number, x.
func TestPartitions(t *testing.T) {
	files := func(base string, names ...string) (out map[string][]byte) {
		out = map[string][]byte{}
		for i, name := range names {
			out[base+"/"+name+"/part.arrow"] = numbered(t, i)
		}
		return out
	}
	all := map[string][]byte{"outside/x=0/p.arrow": numbered(t, 9), "plain/a/p.arrow": numbered(t, 1), "lake/table/k=1/p.arrow": numbered(t, 1)}
	for _, some := range []map[string][]byte{
		files("int", "k=10", "k=9", "k=-1", "k=9223372036854775807"),
		files("text", "k=10", "k=010"), files("plus", "k=+1"), files("large", "k=9223372036854775808"), files("zero", "k=-0"),
		files("null", "k=7", "k=__HIVE_DEFAULT_PARTITION__"), files("nothing", "k=__HIVE_DEFAULT_PARTITION__"),
		files("url", "k%20y=a%2Fb%3D", "k%20y=%zz+%C3%A9%2", "k%20y="), files("equals", "k=a=b"),
		files("two", "year=2024/month=2", "year=2023/month=11", "year=2024/month=1"),
		files("order", "b=1/a=2", "a=1/b=2"), files("deep", "a=1/b=2", "a=1"), files("mixed", "a=1", "."),
		files("replaced", "x=7", "x=a"), files("twice", "k=1/k=2"), files("loop", "k=1"), files("bytes", "k=%ff"), files("key", "%ff=1"),
		files("hidden", "k=1", "k=1/_temporary/0", "_k=2", ".k=3", "k=1/.x"), files("side", "k=1", "more"), files("none", "k=1/sub"),
		{"none/k=1/sub/part.arrow": nil, "none/k=1/sub/x.txt": nil, "bare/k=1/readme.txt": nil, "=1/part.arrow": numbered(t, 1)},
		files("delta", "_delta_log", "k=1"), {"hudi/.hoodie/x": nil, "hudi/a.arrow": nil},
		files("iceberg/data", "k=1"), {"iceberg/metadata/v1.metadata.json": nil}, files("plainer/data", "k=1"), {"plainer/metadata/x.json": nil},
	} {
		for name, data := range some {
			all[name] = data
		}
	}
	delete(all, "none/k=1/sub/part.arrow")
	folder(t, all)
	if err := os.Symlink("..", "loop/k=1/j=1"); err != nil {
		t.Fatal(err)
	}
	const move = "; all files of a dataset need the same keys in the same order; open them apart, or move the files"
	for _, c := range []struct {
		pattern string
		code    status.Code
		want    string
	}{
		{"int", 0, "x k:int64; 2 -1; 0 10; 1 9; 3 9223372036854775807"},
		{"text", 0, `x k:string; 1 "010"; 0 "10"`},
		{"plus", 0, `x k:string; 0 "+1"`},
		{"zero", 0, `x k:string; 0 "-0"`},
		{"large", 0, `x k:string; 0 "9223372036854775808"`},
		{"null", 0, "x k:int64?; 0 7; 1 null"},
		{"nothing", 0, "x k:string?; 0 null"},
		{"url", 0, `x k y:string; 1 "%zz+é%2"; 2 ""; 0 "a/b="`},
		{"equals", 0, `x k:string; 0 "a=b"`},
		{"two", 0, "x year:int64 month:int64; 1 2023 11; 2 2024 1; 0 2024 2"},
		{"two/year=2024", 0, "x month:int64; 2 1; 0 2"},
		{"two/year=2024/month=1", 0, "x; 2"},
		{"two/*/month=*/*.arrow", 0, "x year:int64 month:int64; 1 2023 11; 2 2024 1; 0 2024 2"},
		{"two/year=2024/*/*.arrow", 0, "x month:int64; 2 1; 0 2"},
		{"two/year=2024/month=1/*.arrow", 0, "x; 2"},
		{"two/year=2024/month=1/part.arrow", 0, "x; 2"},
		{"replaced", 0, `x:string; "7"; "a"`},
		{"hidden", 0, "x k:int64; 0 1"},
		{"=1", 0, "x; 1"},

		{"order", status.Incompatible, `the directories of order/b=1/a=2/part.arrow name the keys "b", "a", but the directories of order/a=1/b=2/part.arrow name the keys "a", "b"` + move},
		{"deep", status.Incompatible, `the directories of deep/a=1/part.arrow name the keys "a", but the directories of deep/a=1/b=2/part.arrow name the keys "a", "b"` + move},
		{"mixed", status.Incompatible, `the directories of mixed/part.arrow name no keys, but the directories of mixed/a=1/part.arrow name the keys "a"` + move},
		{"loop", status.InvalidArgument, `loop/k=1/j=1/k=1: the key "k" comes twice in the names of directories; rename one of them, or open a directory further inside`},
		{"twice", status.InvalidArgument, `twice/k=1/k=2: the key "k" comes twice in the names of directories; rename one of them, or open a directory further inside`},
		{"*wice/*/*/*", status.InvalidArgument, `twice/k=1/k=2/part.arrow: the key "k" comes twice in the names of directories; rename one of them, or open a directory further inside`},
		{"bytes", status.InvalidArgument, `bytes/k=%ff: the name of the directory stands for "k"="\xff", which is not UTF-8; rename the directory`},
		{"key", status.InvalidArgument, `key/%ff=1: the name of the directory stands for "\xff"="1", which is not UTF-8; rename the directory`},
		{"side", status.InvalidArgument, "side: the directory has partitions, such as key=value, and the directory side/more with Arrow files in it, which would be left out; move it, or say which files are meant, as in side/more/*.arrow"},
		{"none", status.NotFound, "none: the partitions have no file of Arrow or Parquet (" + arrowio.Suffixes + "); open a directory that has some"},
		{"bare", status.NotFound, "bare: the partitions have no file of Arrow or Parquet (" + arrowio.Suffixes + "); open a directory that has some"},
		{"lake", status.NotFound, "lake: the directory has no file of Arrow or Parquet (" + arrowio.Suffixes + "); open a directory with partitions: lake/table"},
		{"lake/*", status.NotFound, `no file matches "lake/*", only the directory lake/table; open a directory with partitions: lake/table`},
		{"plain", status.NotFound, "plain: the directory has no file of Arrow or Parquet (" + arrowio.Suffixes + "); files in subdirectories are taken by a glob: plain/*/*.arrow"},
		{"delta", status.Unsupported, "delta: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, _delta_log, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"hudi", status.Unsupported, "hudi: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, .hoodie, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"delta/*/*.arrow", status.Unsupported, "delta: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, _delta_log, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"delta/k=1/*", status.Unsupported, "delta: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, _delta_log, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"delta/k=1", status.Unsupported, "delta: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, _delta_log, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"iceberg", status.Unsupported, "iceberg: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, metadata, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"iceberg/data", status.Unsupported, "iceberg: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, metadata, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"iceberg/data/k=*/*", status.Unsupported, "iceberg: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, metadata, says which files and records belong to it; open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own"},
		{"delta/k=1/part.arrow", 0, "x; 1"},
		{"plainer/data", 0, "x k:int64; 0 1"},
		{"plainer/data/*/*", 0, "x k:int64; 0 1"},
	} {
		ds, err := arrowio.Open(c.pattern)
		if err != nil {
			if status.CodeOf(err) != c.code || err.Error() != "arrowio: "+c.want {
				t.Errorf("%s:\n got %v\nwant arrowio: %s", c.pattern, err, c.want)
			}
			continue
		}
		if got := recordsOf(t, ds); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.pattern, got, c.want)
		}
		ds.Close()
	}
}

// recordsOf lists the fields and the rows of a dataset of int8, int64 and text.
func recordsOf(t *testing.T, ds source.Source) string {
	t.Helper()
	var fields []int
	var names []string
	for i, f := range ds.Schema().Fields {
		name := f.Name
		if f.Type != dtype.Int8 {
			name += ":" + f.TypeString()
		}
		if f.Nullable {
			name += "?"
		}
		fields, names = append(fields, i), append(names, name)
	}
	text := []string{strings.Join(names, " ")}
	r, err := ds.Reader(fields)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for record := range ds.Len() {
		spans := make([]source.Span, len(fields))
		for i := range spans {
			spans[i] = source.Span{Field: i, Record: record}
		}
		err := r.Read(t.Context(), source.Draw{}, spans, func() error {
			var cells []string
			for i := range spans {
				switch f, row := ds.Schema().Fields[i], spans[i].Row; {
				case spans[i].Null():
					cells = append(cells, "null")
				case f.Ragged > 0:
					cells = append(cells, fmt.Sprintf("%q", row))
				case f.Type == dtype.Int8:
					cells = append(cells, fmt.Sprint(row[0]))
				default:
					cells = append(cells, fmt.Sprint(int64(binary.LittleEndian.Uint64(row))))
				}
			}
			text = append(text, strings.Join(cells, " "))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(text, "; ")
}

// TestPartitionedSource runs the conformance suite over partitions of IPC and Parquet, and
// compares gathered values with the values in the names.
func TestPartitionedSource(t *testing.T) {
	parquet := contentOf(t, "testdata/parquet/duckdb.parquet")
	numbers := column(t, "x", arrow.PrimitiveTypes.Int8, "[1, 2, 3]")
	folder(t, map[string][]byte{
		"ipc/k=1/t=a/p.arrow": numbers, "ipc/k=1/t=/p.arrow": numbers, "ipc/k=__HIVE_DEFAULT_PARTITION__/t=b/p.arrow": column(t, "x", arrow.PrimitiveTypes.Int8, "[7, 8]"),
		"parquet/k=5/p.parquet": parquet, "parquet/k=6/p.parquet": parquet,
	})
	for _, dir := range []string{"ipc", "parquet"} {
		t.Run(dir, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) source.Source { return opened(t, dir) })
		})
	}
	ds := opened(t, "ipc")
	v, err := view.Pad(ds, "t", view.Padding{Length: 2})
	if err != nil {
		t.Fatal(err)
	}
	g, err := v.Gatherer([]source.Part{v.Schema().Whole(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	got, want := make([]byte, 64), []byte{1, 0, 0, 0, 0, 0, 0, 0}
	if err = g.Gather(t.Context(), source.Draw{}, all(v), []source.Job{{Rows: [2]int{0, 8}, Dst: got}}); string(got) != strings.Repeat(string(want), 6)+strings.Repeat("\x00", 16) || err != nil {
		t.Errorf("%v %v", got, err)
	}
	if v, err := ds.Verify(t.Context(), arrowio.VerifyOptions{Hash: true}); err != nil || v.Records != 8 {
		t.Errorf("%+v %v", v, err)
	}
}

// opened opens a directory until the end of the test.
func opened(t *testing.T, dir string) *arrowio.Dataset {
	t.Helper()
	ds, err := arrowio.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

// TestPartitionFingerprint: keys and values are part of the fingerprint, other names are not.
func TestPartitionFingerprint(t *testing.T) {
	x := numbered(t, 1)
	folder(t, map[string][]byte{
		"a/k=1/p.arrow": x, "b/k=1/q.arrow": x, "c/k=2/p.arrow": x, "d/j=1/p.arrow": x, "e/p.arrow": x, "f/k=/p.arrow": x,
		"g/k=__HIVE_DEFAULT_PARTITION__/p.arrow": x, "h/k=1/j=1/p.arrow": x, "i/j=1/k=1/p.arrow": x,
	})
	seen := map[source.Fingerprint]string{}
	for _, dir := range []string{"a", "c", "d", "e", "f", "g", "h", "i"} {
		f := fingerprintAs(t, arrowio.Options{}, dir)
		if other, ok := seen[f]; ok {
			t.Errorf("%s has the fingerprint of %s", dir, other)
		}
		seen[f] = dir
	}
	if f := fingerprintAs(t, arrowio.Options{}, "b"); seen[f] != "a" {
		t.Errorf("the name of a file gives it the fingerprint of %q", seen[f])
	}
}

// all returns the numbers of all records.
func all(ds source.Source) (records []int64) {
	for i := range ds.Len() {
		records = append(records, i)
	}
	return records
}
