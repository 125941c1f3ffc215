package arrowio

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// facts are what a dataset reports about the files of openerFiles.
type facts struct {
	records     int64
	paths       []string
	fingerprint source.Fingerprint
	hash        Hash
	verified    Verification
	rows        []byte
}

// factsOf opens patterns and reads everything.
func factsOf(t *testing.T, o Options, patterns ...string) (f facts) {
	t.Helper()
	d, err := OpenFiles(t.Context(), patterns, o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f.records = d.Len()
	for _, file := range d.Files() {
		f.paths = append(f.paths, file.Path)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f.fingerprint, err = d.Fingerprint(t.Context())
	check(err)
	f.hash, err = d.Hash(t.Context())
	check(err)
	f.verified, err = d.Verify(t.Context(), VerifyOptions{Hash: true})
	check(err)
	for i, field := range d.Schema().Fields {
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(i)})
		check(err)
		defer g.Close()
		records := []int64{f.records - 1, -1, 0}
		dst := make([]byte, len(records)*field.RowBytes())
		check(g.Gather(t.Context(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}))
		f.rows = append(f.rows, dst...)
	}
	return f
}

// searching counts the calls of an opener. An open without the entry of a listing is an "Open blindly".
type searching struct {
	blobtest.Memory
	calls map[string]int
	mu    *sync.Mutex
}

func (c searching) count(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[call]++
}

func (c searching) Stat(ctx context.Context, name string) (blob.Entry, error) {
	c.count("Stat")
	return c.Memory.Stat(ctx, name)
}

func (c searching) List(ctx context.Context, dir string) ([]blob.Entry, error) {
	c.count("List")
	return c.Memory.List(ctx, dir)
}

func (c searching) Glob(ctx context.Context, pattern string) ([]blob.Entry, error) {
	c.count("Glob")
	return c.Memory.Glob(ctx, pattern)
}

func (c searching) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	if c.count("Open"); e.Version == "" || e.Size != int64(len(c.Memory[e.Name])) {
		c.count("Open blindly")
	}
	return c.Memory.Open(ctx, e)
}

// TestBlobsInMemory: a dataset of blobs in memory equals the same dataset of files,
// through globs, directories and a state.json.
func TestBlobsInMemory(t *testing.T) {
	memory := blobtest.Memory{"hf/state.json": []byte(`{"_data_files": [{"filename": "b.arrow"}, {"filename": "a.arrow"}]}`)}
	for name, from := range map[string]string{"dir/a.arrow": "fixed.arrow", "dir/b.arrow": "fixed.arrow", "dir/notes.txt": "fixed.arrow", "hf/a.arrow": "fixed.arrow", "hf/b.arrow": "fixed.arrow", "lz4/x.arrow": "lz4.arrow", "streams/x.arrows": "huggingface.stream"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(golden), from))
		if err != nil {
			t.Fatal(err)
		}
		memory[name] = data
	}
	t.Chdir(t.TempDir())
	for name, data := range memory {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, files := range map[string]int{"dir": 2, "d*/?.arrow": 2, "hf": 2, "*/b.arrow": 2, "lz4/x.arrow": 1, "streams": 1} {
		want, got := factsOf(t, Options{}, pattern), factsOf(t, Options{Opener: memory}, pattern)
		if want.records != got.records || len(got.paths) != files || !slices.Equal(want.paths, got.paths) {
			t.Errorf("%s: %d records of %q, want %d of %q", pattern, got.records, got.paths, want.records, want.paths)
		}
		if want.fingerprint != got.fingerprint || want.verified.Fingerprint != got.verified.Fingerprint || want.hash.Sum != got.hash.Sum {
			t.Errorf("%s: another fingerprint or hash", pattern)
		}
		if !bytes.Equal(want.rows, got.rows) || len(got.rows) == 0 {
			t.Errorf("%s: other rows", pattern)
		}
	}
	far := searching{Memory: blobtest.Memory{}, calls: map[string]int{}, mu: new(sync.Mutex)}
	for name, data := range memory {
		far.Memory["s3://b/"+name] = data
	}
	for pattern, calls := range map[string]string{ // calls of the opener; List looks for the log of a table
		"dir": "map[List:1 Open:2 Stat:1]", "d*/?.arrow": "map[Glob:1 List:1 Open:2 Stat:1]", "hf": "map[List:1 Open:3 Stat:1]", "lz4/x.arrow": "map[Open:1 Stat:1]",
	} {
		clear(far.calls)
		want, got := factsOf(t, Options{}, pattern), factsOf(t, Options{Opener: far}, "s3://b/"+pattern)
		if want.fingerprint != got.fingerprint || !bytes.Equal(want.rows, got.rows) || fmt.Sprint(far.calls) != calls {
			t.Errorf("%s: another fingerprint, other rows, or other calls than %s: %v", pattern, calls, far.calls)
		}
	}
	_, err := OpenFiles(t.Context(), []string{"dir/a.arrow", "d*/a.arrow"}, Options{Opener: memory})
	if want := `arrowio: dir/a.arrow (path 1) and dir/a.arrow (path 2, "d*/a.arrow") are the same file, so its records would come twice; leave one out, or pass duplicates="allow" (Go: Duplicates, C: MF_ALLOW_DUPLICATES)`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// cancelling cancels a context after some reads.
type cancelling struct {
	blobtest.Memory
	cancel context.CancelFunc
	after  int
	late   bool // a read began after that
}

func (c *cancelling) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	b, err := c.Memory.Open(ctx, e)
	if c.after == 0 {
		c.cancel()
	}
	return counting{b, c}, err
}

type counting struct {
	blob.Blob
	c *cancelling
}

func (b counting) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if b.c.after--; b.c.after == 0 {
		b.c.cancel()
	}
	if b.c.after < 0 {
		b.c.late = true
	}
	return b.Blob.ReadAt(ctx, p, offset)
}

// TestOpeningEndsWithItsContext cancels after the file is open and at every read.
func TestOpeningEndsWithItsContext(t *testing.T) {
	data, err := os.ReadFile("../internal/arrowmeta/testdata/huggingface.stream")
	if err != nil {
		t.Fatal(err)
	}
	const path = "x.arrows"
	for after := 0; ; after++ {
		ctx, cancel := context.WithCancel(t.Context())
		c := &cancelling{blobtest.Memory{path: data}, cancel, after, false}
		d, err := OpenFiles(ctx, []string{path}, Options{IO: "read", Opener: c})
		cancel()
		if c.after > 0 {
			if err != nil || after < 3 {
				t.Fatalf("after all %d reads: %v", after-1, err)
			}
			_ = d.Close()
			return
		}
		if want := "arrowio: " + path + ": the read was cancelled"; status.CodeOf(err) != status.Cancelled || err.Error() != want {
			t.Errorf("read %d: %v", after, err)
		}
		if c.late {
			t.Errorf("read %d is not the last one", after)
		}
	}
}

// TestGatherOfDecodedRowsEndsWithItsContext: a gather that waits for the
// decompression of a batch returns when its context ends, and when the dataset is
// closed.
func TestGatherOfDecodedRowsEndsWithItsContext(t *testing.T) {
	for _, closes := range []bool{false, true} {
		s := &stuck{waiting: make(chan struct{}, 1), release: make(chan struct{})}
		d := openFileThrough(t, "../internal/arrowmeta/testdata/lz4.arrow", func(f *os.File) io.ReaderAt { s.File = f; return s })
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.hangs.Store(true)
		ended := make(chan error, 1)
		go func() {
			dst := make([]byte, d.Schema().Fields[0].RowBytes())
			ended <- g.Gather(ctx, source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}})
		}()
		<-s.waiting
		if closes {
			_ = d.Close()
		} else {
			cancel()
		}
		if err := within(t, "a gather of decoded rows", ended); status.CodeOf(err) != status.Cancelled {
			t.Errorf("closed %v: %v", closes, err)
		}
		close(s.release)
		cancel()
		_ = d.Close()
	}
}
