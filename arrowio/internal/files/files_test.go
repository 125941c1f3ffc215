package files_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/status"
)

// folder writes files to a temporary folder and changes into it. Names of files may have
// directories.
func folder(t *testing.T, content map[string][]byte) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, data := range content {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// numbered returns a file of the only format that these tests have: one number.
func numbered(n byte) []byte { return []byte{n} }

// find returns the numbers in the files that patterns stand for, in order.
func find(t *testing.T, split string, patterns ...string) (numbers []byte, err error) {
	t.Helper()
	recognize := func(_ context.Context, b blob.Blob) bool { return b.Size() == 1 }
	list, err := files.Find(t.Context(), patterns, files.Options{Opener: local.Opener{}, Split: split, Recognize: recognize})
	for i := range list {
		data, err := os.ReadFile(list[i].Path)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, data...)
	}
	return numbers, err
}

// TestOrderOfFiles names files in every way. Each holds one number, which shows the order.
func TestOrderOfFiles(t *testing.T) {
	state := `{"_data_files": [{"filename": "data-00001-of-00002.arrow"}, {"filename": "data-00000-of-00002.arrow"}], "_indices_data_files": null, "_format_type": null}`
	folder(t, map[string][]byte{
		"a.arrow": numbered(0), "b.arrow": numbered(1),
		"z/b.arrow": numbered(10), "y/b.arrow": numbered(11), "y/c.arrow": numbered(12), "z/a.arrow": numbered(13),
		"odd[1].arrow": numbered(20), "w/d.arrow": numbered(40), "w/e.IPC": numbered(41), "w/notes.txt": []byte("no Arrow"), "w/odd[1].arrow": numbered(42),
		"hf/data-00000-of-00002.arrow": numbered(30), "hf/data-00001-of-00002.arrow": numbered(31),
		"hf/cache-1.arrow": numbered(32), "hf/state.json": []byte(state), "hf/dataset_info.json": []byte("{}"),
		"h/n.arrow": numbered(50), "h/_b.arrow": numbered(51), "h/.c.arrow": numbered(52), "h/_tmp/d.arrow": numbered(53), "h/.git/e.arrow": numbered(54),
		"spark/part-1": numbered(60), "spark/part-0": numbered(61), "spark/_SUCCESS": {}, "spark/.part-0.crc": []byte("crc"), "spark/notes.txt": []byte("no Arrow"),
		"short/a.pq": numbered(70), "short/b.parq": numbered(71), "short/c.FTR": numbered(72), "short/part-0": numbered(73),
		"hive/year=1/000000_0": numbered(80), "hive/year=2/a.arrow": numbered(81), "hive/year=2/LICENSE": []byte("no Arrow"), "hive/LICENSE": []byte("no Arrow"),
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
		got, err := find(t, "", c.patterns...)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.patterns, got, err, c.want)
		}
	}
}

// TestEmptyPaths names files with variables that a program forgot to set.
func TestEmptyPaths(t *testing.T) {
	folder(t, map[string][]byte{"x.arrow": numbered(1)})
	for want, patterns := range map[string][]string{
		"arrowio: no files were named; name files, globs or directories":  nil,
		"arrowio: path 1 of 1 is empty; name files, globs or directories": {""},
		"arrowio: path 2 of 2 is empty; name files, globs or directories": {"x.arrow", ""},
	} {
		_, err := find(t, "", patterns...)
		if status.CodeOf(err) != status.InvalidArgument || err.Error() != want {
			t.Errorf("%q: %v", patterns, err)
		}
	}
}

// TestDuplicates: records come twice if two files are one, or differ in their suffixes alone.
func TestDuplicates(t *testing.T) {
	folder(t, map[string][]byte{"c/a.arrow": numbered(1), "c/a.feather": numbered(2), "c/a.txt": nil, "b/a.arrow": numbered(3)})
	const advice = `; leave one out, or pass duplicates="allow" (Go: Duplicates, C: MF_ALLOW_DUPLICATES)`
	for _, c := range []struct {
		patterns []string
		want     string
	}{
		{[]string{"c"}, `arrowio: c/a.arrow (path 1, "c") and c/a.feather (path 1, "c") have one name and two formats, so their records probably come twice` + advice},
		{[]string{"b", "b/*"}, `arrowio: b/a.arrow (path 1, "b") and b/a.arrow (path 2, "b/*") are the same file, so its records would come twice` + advice},
		{[]string{"c/a.arrow", "b/a.arrow"}, ""},
		{[]string{"c/*.txt", "c/*.arrow"}, ""},
	} {
		list, err := files.Find(t.Context(), c.patterns, files.Options{Opener: local.Opener{}})
		if err != nil {
			t.Fatal(err)
		}
		err = files.CheckDuplicates(list, func(i int) string { return list[i].Path })
		if (c.want != "" || err != nil) && (status.CodeOf(err) != status.InvalidArgument || err.Error() != c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.patterns, err, c.want)
		}
	}
}
