package arrowio_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/tests/random"
)

// onDisk skips a test on a system without locks for folders.
func onDisk(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("decoded units are kept on disk on Linux only")
	}
}

// openCached opens a file with a cache in a folder.
func openCached(t testing.TB, path, folder string, o arrowio.Options) *arrowio.Dataset {
	t.Helper()
	o.Cache = folder
	ds, err := arrowio.OpenFiles(t.Context(), []string{path}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return ds
}

// copyOf copies a file to a new folder.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// entries returns the paths of the entries of a cache.
func entries(t *testing.T, folder string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(folder, "*.units"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// raggedRows announces and reads all rows of a ragged field, then describes them.
func raggedRows(t testing.TB, ds source.Source, field int) []byte {
	t.Helper()
	r, err := ds.Reader([]int{field})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spans := make([]source.Span, ds.Len())
	records := make([]int64, ds.Len())
	for i := range spans {
		records[i], spans[i] = int64(i), source.Span{Field: field, Record: int64(i)}
	}
	r.Ahead(source.Draw{}, records)
	if err := r.Read(t.Context(), source.Draw{}, spans, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return everyRow(t, ds, field)
}

// firstFixed returns the number of the first field with rows of one shape.
func firstFixed(t *testing.T, ds *arrowio.Dataset) int {
	t.Helper()
	return slices.IndexFunc(ds.Schema().Fields, func(f source.Field) bool { return f.Ragged == 0 })
}

// TestDiskEqualsIPC: all fields of Parquet files and of compressed Arrow files, from a cache
// that is made and then found.
func TestDiskEqualsIPC(t *testing.T) {
	onDisk(t)
	pairs := map[string]string{}
	for _, path := range parquetFiles(t) {
		pairs[path] = strings.TrimSuffix(path, "parquet") + "arrow"
	}
	compressed := filepath.Join("..", "internal", "arrowmeta", "testdata", "lz4.arrow")
	pairs[compressed] = compressed
	for path, reference := range pairs {
		want := openCached(t, reference, "memory", arrowio.Options{})
		folder := t.TempDir()
		for _, io := range []string{"map", "read", "auto"} {
			got := openCached(t, path, folder, arrowio.Options{IO: io})
			for i, f := range got.Schema().Fields {
				read := gatherRows
				if f.Ragged > 0 {
					read = raggedRows
				}
				if !bytes.Equal(read(t, got, i), read(t, want, i)) {
					t.Errorf("%s, %s: field %q differs", path, io, f.Name)
				}
			}
		}
		left, _ := os.ReadDir(folder)
		if n := len(entries(t, folder)); n != len(want.Schema().Fields) || len(left) != n {
			t.Errorf("%s: %d entries, %d files, for %d fields", path, n, len(left), len(want.Schema().Fields))
		}
	}
}

// TestDiskReadsNoMore: after the first epoch, rows in random orders come from the cache
// alone, even if the Parquet file has become empty. Without a cache that is an error.
func TestDiskReadsNoMore(t *testing.T) {
	onDisk(t)
	r, folder := random.New(t), t.TempDir()
	for _, path := range parquetFiles(t) {
		for _, cache := range []string{folder, "memory"} {
			mine := copyOf(t, path)
			ds := openCached(t, mine, cache, arrowio.Options{})
			field := firstFixed(t, ds)
			if ds.Len() == 0 || field < 0 {
				continue
			}
			want := gatherRows(t, ds, field)
			if err := os.Truncate(mine, 0); err != nil {
				t.Fatal(err)
			}
			f := ds.Schema().Fields[field]
			g, err := ds.Gatherer([]source.Part{whole(field, f)})
			if err != nil {
				t.Fatal(err)
			}
			records, dst := make([]int64, 50), make([]byte, 50*f.RowBytes())
			for i := range records {
				records[i] = int64(r.IntN(int(ds.Len())))
			}
			err = g.Gather(t.Context(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, 50}, Dst: dst}})
			if cache == "memory" {
				if status.CodeOf(err) != status.DataLoss {
					t.Errorf("%s in memory: %v", path, err)
				}
				continue
			}
			for i, record := range records {
				if n := f.RowBytes(); err != nil || !bytes.Equal(dst[i*n:(i+1)*n], want[int(record)*n:(int(record)+1)*n]) {
					t.Fatalf("%s: record %d differs: %v", path, record, err)
				}
			}
		}
	}
}

// TestDamagedEntries: an entry that was cut, changed at any byte of its table, or belongs to
// other data is made again.
func TestDamagedEntries(t *testing.T) {
	onDisk(t)
	const path = "testdata/parquet/nulls.parquet"
	folder, r := t.TempDir(), random.New(t)
	first := openCached(t, path, folder, arrowio.Options{})
	field := firstFixed(t, first)
	want := gatherRows(t, first, field)
	entry := entries(t, folder)[0]
	good, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	table := int(good[len(good)-48]) + int(good[len(good)-47])<<8 + 48 // with the trailer
	for i := range 60 {
		bad := slices.Clone(good)
		switch i % 3 {
		case 0:
			bad = bad[:r.IntN(len(bad))]
		case 1:
			bad[len(bad)-1-r.IntN(table)] ^= byte(1 + r.IntN(255))
		case 2:
			bad = append(bad, bad[r.IntN(len(bad)):]...)
			bad = bad[:len(bad)-1]
		}
		if err := os.Remove(entry); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(entry, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := gatherRows(t, openCached(t, path, folder, arrowio.Options{}), field); !bytes.Equal(got, want) {
			t.Fatalf("case %d: wrong values from %d bytes instead of %d", i, len(bad), len(good))
		}
		if now, _ := os.ReadFile(entry); !bytes.Equal(now, good) {
			t.Fatalf("case %d: the damaged entry was kept", i)
		}
	}
}

// TestChangedFileHasNewKey: another content under the same name and size is decoded anew,
// even with the old time of modification.
func TestChangedFileHasNewKey(t *testing.T) {
	onDisk(t)
	folder, path := t.TempDir(), copyOf(t, "testdata/parquet/nulls.parquet")
	ds := openCached(t, path, folder, arrowio.Options{})
	field := firstFixed(t, ds)
	gatherRows(t, ds, field)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // the clock of the file system may tick slowly; until then the status times are equal
		data, _ := os.ReadFile(path)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		gatherRows(t, openCached(t, path, folder, arrowio.Options{}), field)
		if len(entries(t, folder)) == 2 {
			return
		}
	}
	t.Error("a changed file has the key of the old one")
}

// TestSharedByDatasets: several datasets make a cache at the same time, and leave one entry
// for each part.
func TestSharedByDatasets(t *testing.T) {
	onDisk(t)
	const path = "testdata/parquet/nulls.parquet"
	folder := t.TempDir()
	want := gatherRows(t, openCached(t, path, "memory", arrowio.Options{}), 0)
	list := make([]*arrowio.Dataset, 8)
	for i := range list {
		list[i] = openCached(t, path, folder, arrowio.Options{})
	}
	f := list[0].Schema().Fields[0]
	records := make([]int64, list[0].Len())
	for i := range records {
		records[i] = int64(i)
	}
	err := guard.Parallel(t.Context(), "test", len(list), len(list), func(i int) error {
		g, err := list[i].Gatherer([]source.Part{whole(0, f)})
		if err != nil {
			return err
		}
		dst := make([]byte, len(records)*f.RowBytes())
		if err := g.Gather(t.Context(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
			return err
		}
		if !bytes.Equal(dst, want) {
			return fmt.Errorf("dataset %d differs", i)
		}
		return nil
	})
	if n := len(entries(t, folder)); err != nil || n != 1 {
		t.Errorf("%d entries, %v", n, err)
	}
	wantEntry(t, folder, path, f.Name)
}

// wantEntry checks what the only file of a folder says of its dataset, and when it was used.
func wantEntry(t *testing.T, folder, path, columns string) {
	t.Helper()
	c, err := arrowio.OpenCache(folder)
	if err != nil {
		t.Fatal(err)
	}
	dataset, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	name := entries(t, folder)[0]
	used := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	if err := os.Chtimes(name, used, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		list, err := c.Entries()
		if err != nil || len(list) != 1 || list[0].Dataset != dataset || list[0].Columns != columns || !list[0].Used.Equal(used) {
			t.Errorf("%+v, %v", list, err)
		}
	}
}

// TestNoRoom: a folder that was chosen and has no room is an error, before a gather if the
// size is known. With "auto", rows come from memory, and Cache says why.
func TestNoRoom(t *testing.T) {
	onDisk(t)
	folder := t.TempDir()
	for path, wants := range map[string][]string{
		"testdata/parquet/nulls.parquet":  {"the decoded fields take ", "but the cache in " + folder + " may have 10; give the cache more bytes"},
		"testdata/parquet/ragged.parquet": {"the cache in " + folder + " may have 10 bytes", "bytes more are needed; make room, or give"},
	} {
		ds := openCached(t, path, folder, arrowio.Options{CacheBytes: 10})
		_, err := firstRow(t, ds, 0, true)
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) || status.CodeOf(err) != status.ResourceExhausted {
				t.Errorf("%s: got %v\nwant %s", path, err, want)
			}
		}
		t.Setenv("XDG_CACHE_HOME", folder)
		ds = openCached(t, path, "auto", arrowio.Options{CacheBytes: 10})
		ds.KeepOnDisk()
		if _, err := firstRow(t, ds, 0, true); err != nil {
			t.Error(err)
		}
		if c := source.CacheInfoOf(ds); c.Folder != "" || c.Problem == nil {
			t.Errorf("%+v", c)
		}
	}
}

// firstRow reads the row of record 0 of a field, if announced after its announcement.
func firstRow(t *testing.T, ds *arrowio.Dataset, field int, announced bool) (row []byte, err error) {
	t.Helper()
	r, err := ds.Reader([]int{field})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if announced {
		r.Ahead(source.Draw{}, []int64{0})
	}
	spans := []source.Span{{Field: field}}
	err = r.Read(t.Context(), source.Draw{}, spans, func() error { row = slices.Clone(spans[0].Row); return nil })
	return row, err
}

// TestAutoUsesTheUsersCache: the folder is below the user's cache directory, and small
// fields make none. A look at a row makes none either.
func TestAutoUsesTheUsersCache(t *testing.T) {
	onDisk(t)
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	const path = "testdata/parquet/nulls.parquet"
	ds := openCached(t, path, "auto", arrowio.Options{})
	field := firstFixed(t, ds)
	gatherRows(t, ds, field)
	if list, _ := os.ReadDir(home); len(list) > 0 || source.CacheInfoOf(ds) != (source.CacheInfo{}) {
		t.Errorf("small fields are on disk: %v", list)
	}
	ds.KeepOnDisk()
	if _, err := firstRow(t, ds, field, false); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(home, "meshfeed", "units")
	if n := len(entries(t, folder)); n > 0 {
		t.Errorf("a look at rows made %d entries", n)
	}
	gatherRows(t, ds, field)
	if n := len(entries(t, folder)); n != 1 || source.CacheInfoOf(ds).Folder != folder || source.CacheInfoOf(ds).Limit <= 0 {
		t.Errorf("%d entries, %+v", n, source.CacheInfoOf(ds))
	}
	for _, bad := range []string{"", filepath.Join(folder, filepath.Base(entries(t, folder)[0]))} {
		t.Setenv("XDG_CACHE_HOME", bad)
		t.Setenv("HOME", bad)
		ds := openCached(t, path, "", arrowio.Options{})
		ds.KeepOnDisk()
		gatherRows(t, ds, field)
		if source.CacheInfoOf(ds).Problem == nil {
			t.Errorf("a home %q is accepted", bad)
		}
	}
}

// TestUnusableCache: a folder that cannot be made is an error of Open, if there is something
// to decode.
func TestUnusableCache(t *testing.T) {
	onDisk(t)
	file := copyOf(t, "testdata/parquet/nulls.parquet")
	o := arrowio.Options{Cache: filepath.Join(file, "x")}
	_, err := arrowio.OpenFiles(t.Context(), []string{file}, o)
	if want := "arrowio: the cache in " + o.Cache + ": not a directory; give a folder that this user may write, or keep decoded rows in memory (cache=\"memory\")"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	ds, err := arrowio.OpenFiles(t.Context(), []string{"testdata/parquet/nulls.arrow"}, o)
	if err != nil {
		t.Fatal(err)
	}
	_ = ds.Close()
	if _, err := arrowio.OpenFiles(t.Context(), []string{file}, arrowio.Options{CacheBytes: -1}); status.CodeOf(err) != status.InvalidArgument {
		t.Error(err)
	}
}

// TestDiskLeavesNothingOpen: after a close no entry is open or mapped, and it may be removed.
func TestDiskLeavesNothingOpen(t *testing.T) {
	onDisk(t)
	folder := t.TempDir()
	ds, err := arrowio.OpenFiles(context.Background(), []string{"testdata/parquet/nulls.parquet"}, arrowio.Options{Cache: folder, IO: "map"})
	if err != nil {
		t.Fatal(err)
	}
	gatherRows(t, ds, 0)
	for _, open := range []bool{true, false} {
		maps, _ := os.ReadFile("/proc/self/maps")
		files, _ := os.ReadDir("/proc/self/fd")
		held := slices.ContainsFunc(files, func(f os.DirEntry) bool {
			to, _ := os.Readlink("/proc/self/fd/" + f.Name())
			return strings.HasPrefix(to, folder)
		})
		if mapped := bytes.Contains(maps, []byte(folder)); mapped != open || held != open {
			t.Errorf("mapped %v, held %v, want %v", mapped, held, open)
		}
		if open {
			if err := ds.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
