package arrowio

import (
	"context"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// golden is a small file with a field "image".
const golden = "../internal/arrowmeta/testdata/fixed.arrow"

// stuck reads a file. If hangs is set, a read waits for release, like a disk that
// does not answer.
type stuck struct {
	*os.File
	hangs   atomic.Bool
	waiting chan struct{}
	release chan struct{}
}

func (s *stuck) ReadAt(p []byte, off int64) (int, error) {
	if s.hangs.Load() {
		select {
		case s.waiting <- struct{}{}:
		default:
		}
		<-s.release
	}
	return s.File.ReadAt(p, off)
}

// through is an opener of local files. They are read by the reader that wrap returns.
type through struct {
	local.Opener
	wrap func(f *os.File) io.ReaderAt
}

func (o through) Open(_ context.Context, e blob.Entry) (blob.Blob, error) {
	f, err := os.Open(e.Name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return blobtest.Bytes(e.Name, io.NewSectionReader(o.wrap(f), 0, info.Size())), err
}

// openThrough opens a dataset and reads its file by the reader that wrap returns.
func openThrough(t *testing.T, wrap func(f *os.File) io.ReaderAt) *Dataset {
	return openFileThrough(t, golden, wrap)
}

func openFileThrough(t *testing.T, path string, wrap func(f *os.File) io.ReaderAt) *Dataset {
	d, err := OpenFiles(t.Context(), []string{path}, Options{Opener: through{wrap: wrap}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openStuck opens a dataset with a gather that waits for its disk, which does not
// answer.
func openStuck(t *testing.T, ctx context.Context) (d *Dataset, s *stuck, ended chan error) {
	s = &stuck{waiting: make(chan struct{}, 1), release: make(chan struct{})}
	d = openThrough(t, func(f *os.File) io.ReaderAt { s.File = f; return s })
	g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
	s.hangs.Store(true)
	ended = make(chan error, 1)
	guard.Go("test", func() error {
		dst := make([]byte, d.Schema().Fields[0].RowBytes())
		ended <- g.Gather(ctx, source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}})
		return nil
	}, func(err error) { ended <- err })
	<-s.waiting
	return d, s, ended
}

// within fails after twenty seconds. The promise is one second.
func within(t *testing.T, what string, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal(what + " waits for the disk")
		return nil
	}
}

func TestCancelUnderAHungDisk(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	d, s, ended := openStuck(t, ctx)
	cancel()
	if err := within(t, "a cancelled gather", ended); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	close(s.release)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseUnderAHungDisk(t *testing.T) {
	d, s, ended := openStuck(t, context.Background())
	closed := make(chan error, 1)
	guard.Go("test", func() error { closed <- d.Close(); return nil }, nil)
	if err := within(t, "Close", closed); err != nil {
		t.Error(err)
	}
	if err := within(t, "a gather under Close", ended); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	close(s.release)
}

// counted counts the reads of a file.
type counted struct {
	*os.File
	reads atomic.Int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.reads.Add(1)
	return c.File.ReadAt(p, off)
}

// openLists opens a dataset, and returns the number of a field with lists.
func openLists(t *testing.T, wrap func(f *os.File) io.ReaderAt) (d *Dataset, field int) {
	d = openFileThrough(t, "../internal/arrowmeta/testdata/huggingface.stream", wrap)
	for i, f := range d.table.Fields {
		if f.LastOffsets() >= 0 {
			return d, i
		}
	}
	t.Fatal("the file has no lists")
	return nil, 0
}

// TestChecksOfListsEnd cancels a check that waits for its disk, and closes the
// dataset of another such check.
func TestChecksOfListsEnd(t *testing.T) {
	for _, closes := range []bool{false, true} {
		s := &stuck{waiting: make(chan struct{}, 1), release: make(chan struct{})}
		d, field := openLists(t, func(f *os.File) io.ReaderAt { s.File = f; return s })
		if _, err := d.table.Column(field); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.hangs.Store(true)
		ended, closed := make(chan error, 1), make(chan error, 1)
		guard.Go("test", func() error { ended <- source.Check(ctx, d, []int{field}); return nil }, func(err error) { ended <- err })
		<-s.waiting
		if closes {
			guard.Go("test", func() error { closed <- d.Close(); return nil }, nil)
		} else {
			cancel()
		}
		const want = "arrowio: the check of the lists was ended: context canceled"
		if err := within(t, "a check that was ended", ended); status.CodeOf(err) != status.Cancelled || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		close(s.release)
		if closes {
			if err := within(t, "Close", closed); err != nil {
				t.Error(err)
			}
		}
		cancel()
		_ = d.Close()
	}
}

// TestChecksOfListsReadOffsetsOnce counts the reads of a second check.
func TestChecksOfListsReadOffsetsOnce(t *testing.T) {
	c := &counted{}
	d, field := openLists(t, func(f *os.File) io.ReaderAt { c.File = f; return c })
	defer d.Close()
	if err := source.Check(context.Background(), d, []int{field}); err != nil {
		t.Fatal(err)
	}
	before := c.reads.Load()
	if err := d.Facts().Check(context.Background(), []int{field, field}, 1, d.Len()); err != nil {
		t.Fatal(err)
	}
	if again := c.reads.Load() - before; again != 0 {
		t.Errorf("a second check reads %d times", again)
	}
}

// TestTruncatedAfterOpen truncates a file while it is open.
func TestTruncatedAfterOpen(t *testing.T) {
	for _, io := range []string{"map", "read"} {
		data, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		path := t.TempDir() + "/x.arrow"
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := OpenFiles(t.Context(), []string{path}, Options{IO: io})
		if err != nil {
			t.Fatal(err)
		}
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 64); err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, d.Schema().Fields[0].RowBytes())
		err = g.Gather(context.Background(), source.Draw{}, []int64{4}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}})
		want := "arrowio: " + path + " ends before the " + strconv.Itoa(len(data)) + " bytes that it had when it was opened; do not write to a file while it is read: write another and rename it"
		if err == nil || status.CodeOf(err) != status.DataLoss || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", io, err, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
