package arrowio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// computing counts the rows that are read of a dataset, which has a version.
type computing struct {
	source.Source
	version string
	rows    *atomic.Int64
	fail    *atomic.Bool // the next read fails
}

func newComputing(records int64, fields ...source.Field) computing {
	return computing{synthetic.New(records, fields...), "1", new(atomic.Int64), new(atomic.Bool)}
}

func (s computing) Facts() source.Facts {
	f := s.Source.Facts()
	f.Version = func() (string, error) { return s.version, nil }
	return f
}

func (s computing) Reader(fields []int) (source.Reader, error) {
	r, err := s.Source.Reader(fields)
	return computingReader{r, s}, err
}

type computingReader struct {
	source.Reader
	of computing
}

func (r computingReader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	if r.of.fail.Swap(false) {
		return errors.New("the read failed")
	}
	r.of.rows.Add(int64(len(spans)))
	return r.Reader.Read(ctx, draw, spans, use)
}

// mixed are fields of all kinds.
var mixed = []source.Field{
	{Name: "image", Type: dtype.Complex128, Shape: []int{50, 20}},
	{Name: "flag", Type: dtype.Bool}, {Name: "label", Type: dtype.Int64, Logical: "timestamp[us, tz=UTC]"},
	{Name: "text", Type: dtype.Uint8, Ragged: 1, Nullable: true, Logical: "string"},
	{Name: "tokens", Type: dtype.Float32, Ragged: 1, Shape: []int{3}},
}

// cache returns a view that keeps the rows of a dataset in a folder.
func cache(t testing.TB, src source.Source, o arrowio.Options) source.Source {
	t.Helper()
	v, err := arrowio.Cached(t.Context(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// equalRows reads all rows of some fields, and compares them with the rows of a dataset.
func equalRows(t testing.TB, got, want source.Source, fields ...int) {
	t.Helper()
	for _, f := range fields {
		read := gatherRows
		if want.Schema().Fields[f].Ragged > 0 {
			read = everyRow
		}
		if a, b := read(t, got, f), read(t, want, f); !slices.Equal(a, b) {
			t.Errorf("field %d differs", f)
		}
	}
}

// TestCachedSources runs the conformance suite over views of all files, and compares every row. States and
// orders depend on fingerprints and units, so these stay.
func TestCachedSources(t *testing.T) {
	onDisk(t)
	for _, path := range append(parquetFiles(t), "testdata/deltas.arrow") {
		for _, to := range []string{"memory", t.TempDir()} {
			ds := openCached(t, path, "memory", arrowio.Options{})
			v := cache(t, ds, arrowio.Options{Cache: to})
			if a, b := fmt.Sprintf("%+v", v.Schema()), fmt.Sprintf("%+v", ds.Schema()); a != b {
				t.Errorf("schema\n got %s\nwant %s", a, b)
			}
			a, errA := ds.Fingerprint(t.Context())
			b, errB := v.Fingerprint(t.Context())
			if a != b || errA != nil || errB != nil || !slices.Equal(ds.Facts().Units(), v.Facts().Units()) {
				t.Errorf("fingerprints %v and %v, %v, %v; or the units differ", a, b, errA, errB)
			}
			for i := range ds.Schema().Fields {
				equalRows(t, v, ds, i)
			}
			if !strings.Contains(path, "nulls") && !strings.Contains(path, "lists") {
				continue
			}
			sourcetest.Run(t, func(t *testing.T) source.Source {
				v, err := arrowio.Cached(t.Context(), ds, arrowio.Options{Cache: to})
				if err != nil {
					t.Fatal(err)
				}
				return v
			})
		}
	}
}

// TestCachedOnce: several views share the rows. Each row of a field is read once, together with the other
// fields of its record, whatever fields are asked for.
func TestCachedOnce(t *testing.T) {
	onDisk(t)
	src, folder := newComputing(2000, mixed...), t.TempDir()
	views := make([]source.Source, 4)
	for i := range views {
		views[i] = cache(t, src, arrowio.Options{Cache: folder})
	}
	src.rows.Store(0) // the sizes of some rows
	if err := guard.Parallel(t.Context(), "test", len(views), len(views), func(i int) error {
		return readSome(t.Context(), views[i], i+1)
	}); err != nil {
		t.Fatal(err)
	}
	all := int64(len(mixed)) * src.Len()
	if n := src.rows.Load(); n != all {
		t.Errorf("%d rows were read, want %d", n, all)
	}
	again := cache(t, src, arrowio.Options{Cache: folder})
	src.rows.Store(0)
	equalRows(t, again, src.Source, 0, 1, 2, 3, 4)
	if n := src.rows.Load(); n != 0 {
		t.Errorf("%d rows were read again", n)
	}
	c, err := arrowio.OpenCache(folder)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := src.Fingerprint(t.Context())
	list, err := c.Entries()
	if err != nil || len(list) != 4 || list[0].Dataset != "view "+f.String() || list[0].Columns != "image, flag, label, text, tokens" {
		t.Errorf("%+v, %v", list, err)
	}
	src.version = "2"
	changed := cache(t, src, arrowio.Options{Cache: folder})
	src.rows.Store(0)
	if err := readSome(t.Context(), changed, 1); err != nil || src.rows.Load() == 0 {
		t.Errorf("the rows of another version were used: %v", err)
	}
}

// readSome reads all rows of a field.
func readSome(ctx context.Context, src source.Source, field int) error {
	r, err := src.Reader([]int{field})
	if err != nil {
		return err
	}
	defer r.Close()
	spans := make([]source.Span, src.Len())
	for i := range spans {
		spans[i] = source.Span{Field: field, Record: int64(i)}
	}
	return r.Read(ctx, source.Draw{}, spans, func() error { return nil })
}

// TestCachedInMemory: fields that are read one after the other are computed together.
func TestCachedInMemory(t *testing.T) {
	src := newComputing(2000, mixed...)
	v := cache(t, src, arrowio.Options{Cache: "memory"})
	src.rows.Store(0)
	for range 2 {
		equalRows(t, v, src.Source, 4, 3, 0, 1, 2)
	}
	if n, want := src.rows.Load(), int64(len(mixed))*src.Len(); n != want {
		t.Errorf("%d rows were read, want %d", n, want)
	}
}

// TestCachedAfterFailure: a failed read is an error of the gather, and a later one succeeds.
func TestCachedAfterFailure(t *testing.T) {
	src := newComputing(100, mixed[1:]...)
	v := cache(t, src, arrowio.Options{Cache: "memory"})
	src.fail.Store(true)
	if err := readSome(t.Context(), v, 0); err == nil || !strings.Contains(err.Error(), "the read failed") {
		t.Errorf("got %v", err)
	}
	equalRows(t, v, src.Source, 0, 1, 2, 3)
}

// TestNotCached: rows that cannot be kept are refused, with a remedy.
func TestNotCached(t *testing.T) {
	large, err := arrowio.FromSlices(arrowio.Slice("x", make([]byte, 300<<20), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for want, src := range map[string]source.Source{
		`the rows of "drawn x" depend on the draw; keep the dataset below`:                           synthetic.New(3, source.Field{Name: "drawn x", Type: dtype.Int32}),
		"so it does not tell the rows from others; store the data in a file (Python: meshfeed.open)": large,
	} {
		if _, err := arrowio.Cached(t.Context(), src, arrowio.Options{Cache: "memory"}); status.CodeOf(err) != status.Unsupported || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	small := newComputing(10, mixed[1])
	if _, err := arrowio.Cached(t.Context(), small, arrowio.Options{Cache: filepath.Join(os.DevNull, "x")}); err == nil {
		t.Error("a folder that cannot be made was accepted")
	}
}

// TestCachedWithoutRoom: a chosen folder without room is an error. With "auto", rows are kept in
// memory, and Cache says why.
func TestCachedWithoutRoom(t *testing.T) {
	onDisk(t)
	src := newComputing(2000, mixed...)
	v := cache(t, src, arrowio.Options{Cache: t.TempDir(), CacheBytes: 10})
	if err := readSome(t.Context(), v, 0); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	v = cache(t, src, arrowio.Options{CacheHome: t.TempDir(), CacheBytes: 10})
	equalRows(t, v, src.Source, 0, 1, 2, 3, 4)
	if c := source.CacheInfoOf(v); c.Folder != "" || c.Problem == nil {
		t.Errorf("%+v", c)
	}
}
