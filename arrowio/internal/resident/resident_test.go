package resident

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// write makes files of the given sizes and opens them.
func write(t *testing.T, sizes ...int) (files []*File, content [][]byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	for i, size := range sizes {
		data := make([]byte, size)
		for k := range data {
			data[k] = byte(r.Uint32())
		}
		path := filepath.Join(t.TempDir(), string(rune('a'+i)))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := local.Opener{}.Open(t.Context(), blob.Entry{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		files, content = append(files, NewFile(b, nil)), append(content, data)
	}
	return files, content
}

// newSet makes a set. The end of its calls closes its files.
func newSet(t *testing.T, files []*File, o Options) *Set {
	t.Helper()
	s, err := trySet(files, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.calls.Close(source.Patience) })
	return s
}

func trySet(files []*File, o Options) (*Set, error) {
	return NewSet(source.NewCalls("arrowio", "dataset", func() error {
		for _, f := range files {
			_ = f.Close()
		}
		return nil
	}), files, o)
}

// mapsFiles skips a test on systems that do not map files.
func mapsFiles(t *testing.T) {
	t.Helper()
	files, _ := write(t, 1)
	defer files[0].Close()
	if err := files[0].mapIn(true, nil); err != nil {
		t.Skip(err)
	}
}

// plenty is memory for all files.
const plenty = 1 << 40

func truncatedError(f *File) string {
	return fmt.Sprintf("arrowio: %s ends before the %d bytes that it had when it was opened; do not write to a file while it is read: write another and rename it", f.Name(), f.Size())
}

func at(address uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}

// TestAcquire: every way of reading returns the bytes of random spans over several
// files.
func TestAcquire(t *testing.T) {
	for _, o := range []Options{{IO: "read"}, {IO: "auto", Memory: plenty}, {IO: "auto", Memory: 1}, {IO: "map", Memory: plenty}, {IO: "map", Memory: 1}} {
		if o.IO == "map" {
			mapsFiles(t)
		}
		files, content := write(t, 300_000, 1, 0, 70_000)
		s := newSet(t, files, o)
		r := rand.New(rand.NewPCG(2, 2))
		for range 50 {
			spans := make([]Span, r.IntN(200))
			for i := range spans {
				file := []int{0, 1, 3}[r.IntN(3)]
				from := r.IntN(len(content[file]))
				spans[i] = Span{file, int64(from), r.IntN(min(len(content[file])-from, 5000) + 1)}
			}
			s.Ahead(spans)
			to := make([]uintptr, len(spans))
			lease, err := s.Acquire(context.Background(), spans, to)
			if err != nil {
				t.Fatal(err)
			}
			for i, span := range spans {
				if want := content[span.File][span.Offset:][:span.Length]; !bytes.Equal(at(to[i], span.Length), want) {
					t.Fatalf("%+v: span %+v: wrong bytes", o, span)
				}
			}
			lease.Release()
		}
	}
}

func TestChoice(t *testing.T) {
	mapsFiles(t)
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			o          Options
			mapped     bool
			wholeInRAM bool
		}{
			{Options{IO: "auto", Memory: 400}, true, true},
			{Options{IO: "auto", Memory: 396}, false, false},
			{Options{IO: "read", Memory: 400}, false, false},
			{Options{IO: "map", Memory: 10}, true, false},
		} {
			files, _ := write(t, 100, 200)
			if !files[0].mappable.MapByDefault() {
				t.Skip("the temporary folder lies on a network file system")
			}
			newSet(t, files, c.o)
			if mapped := files[0].mapping != nil; mapped != c.mapped {
				t.Errorf("%+v: mapped %v", c.o, mapped)
			}
			synctest.Wait() // for the goroutine that populates
			for _, f := range files {
				if _, whole := f.Base(); whole != c.wholeInRAM {
					t.Errorf("%+v: all resident %v", c.o, whole)
				}
			}
		}
	})
}

// TestMapOfOtherBlobs: a blob without the role is read, and not mapped on demand.
func TestMapOfOtherBlobs(t *testing.T) {
	b := NewFile(blobtest.Bytes("object", bytes.NewReader([]byte("abc"))), nil)
	s := newSet(t, []*File{b}, Options{Memory: plenty})
	to := make([]uintptr, 1)
	if lease, err := s.Acquire(t.Context(), []Span{{0, 1, 2}}, to); err != nil || string(at(to[0], 2)) != "bc" {
		t.Errorf("%v", err)
	} else {
		lease.Release()
	}
	_, err := trySet([]*File{b}, Options{IO: "map"})
	if want := `arrowio: object: io "map" needs a local file, and Linux 5.14 or later; set io to auto or read`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestRegions: spans that lie close together are read at once, up to 1 MB. They
// must be closer if only a part of the file will be in memory.
func TestRegions(t *testing.T) {
	mapsFiles(t)
	spans := []Span{{0, 2_000_000, 10}, {0, 0, 10}, {0, 60_000, 10}, {0, 5, 10}, {0, 200_000, 900_000}, {0, 1_100_050, 10}, {0, 62_000, 10}, {0, 1_103_000, 200_000}}
	for _, c := range []struct {
		memory int64
		want   [][2]int64
	}{
		{1, [][2]int64{{0, 15}, {60_000, 62_010}, {200_000, 1_100_060}, {1_103_000, 1_303_000}, {2_000_000, 2_000_010}}},
		{1 << 30, [][2]int64{{0, 62_010}, {200_000, 1_100_060}, {1_103_000, 1_303_000}, {2_000_000, 2_000_010}}},
	} {
		files, _ := write(t, 3_000_000)
		s := newSet(t, files, Options{IO: "map", Memory: c.memory})
		list, first := s.regions(spans, []int{0, 1, 2, 3, 4, 5, 6, 7}, nil, nil)
		var got [][2]int64
		for _, r := range list {
			got = append(got, [2]int64{r.from, r.to})
		}
		if !slices.Equal(got, c.want) || len(first) != len(list)+1 || first[len(list)] != len(spans) {
			t.Errorf("memory of %d: got %v and %v, want %v", c.memory, got, first, c.want)
		}
	}
}

func TestOutside(t *testing.T) {
	files, _ := write(t, 100)
	s := newSet(t, files, Options{IO: "read"})
	for _, span := range []Span{{0, 99, 2}, {0, -1, 1}, {0, 1 << 62, 1}, {0, 5, -1}} {
		if _, err := s.Acquire(context.Background(), []Span{span}, make([]uintptr, 1)); status.CodeOf(err) != status.Internal {
			t.Errorf("%v: %v", span, err)
		}
	}
}

func TestTruncated(t *testing.T) { synctest.Test(t, testTruncated) }

func testTruncated(t *testing.T) {
	for _, o := range []Options{{IO: "read"}, {IO: "map", Memory: 1}} {
		if o.IO == "map" {
			mapsFiles(t)
		}
		files, _ := write(t, 100_000)
		s := newSet(t, files, o)
		if err := files[0].Check(); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(files[0].Name(), 5000); err != nil {
			t.Fatal(err)
		}
		want := truncatedError(files[0])
		_, err := s.Acquire(context.Background(), []Span{{0, 90_000, 10}}, make([]uintptr, 1))
		if err == nil || err.Error() != want || status.CodeOf(err) != status.DataLoss {
			t.Errorf("%+v: got %v", o, err)
		}
		if err := files[0].Check(); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v", o, err)
		}
		lease, err := s.Acquire(context.Background(), []Span{{0, 10, 10}}, make([]uintptr, 1))
		if err != nil {
			t.Fatalf("%+v: what is left: %v", o, err)
		}
		lease.Release()
	}
}

// slow is a blob. Its reads return when the test lets them.
type slow struct {
	asked    chan int64
	answer   chan error
	released chan struct{} // closed with the blob
}

func (s *slow) Name() string     { return "slow" }
func (s *slow) Size() int64      { return 1 << 20 }
func (s *slow) Identity() string { return "slow" }
func (s *slow) Check() error     { return nil }
func (s *slow) Close() error     { close(s.released); return nil }

func (s *slow) ReadAt(_ context.Context, p []byte, offset int64) (int, error) {
	s.asked <- offset
	if err := <-s.answer; err != nil {
		return 0, err
	}
	for i := range p {
		p[i] = byte(offset) + byte(i)
	}
	return len(p), nil
}

func newSlow(t *testing.T) (*slow, *Set) {
	r := &slow{asked: make(chan int64), answer: make(chan error), released: make(chan struct{})}
	s, err := trySet([]*File{NewFile(r, nil)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newSlow(t)
		var to [1]uintptr
		got := make(chan error, 1)
		go func() {
			lease, err := s.Acquire(t.Context(), []Span{{0, 7, 3}}, to[:])
			if err == nil && !bytes.Equal(at(to[0], 3), []byte{7, 8, 9}) {
				err = errors.New("wrong bytes")
			}
			got <- err
			lease.Release()
		}()
		<-r.asked
		runtime.GC() // only the caller waits for the read
		r.answer <- nil
		if err := <-got; err != nil {
			t.Error(err)
		}
		_ = s.calls.Close(source.Patience)
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newSlow(t)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() {
			_, err := s.Acquire(ctx, []Span{{0, 7, 3}, {0, 900_000, 1}}, make([]uintptr, 2))
			got <- err
		}()
		<-r.asked
		<-r.asked
		cancel()
		if err := <-got; err.Error() != "arrowio: the read was cancelled" || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		_ = s.calls.Close(source.Patience) // returns, although both reads are stuck
		select {
		case <-r.released:
			t.Error("released under a read")
		default:
		}
		r.answer <- nil
		r.answer <- io.ErrUnexpectedEOF
		<-r.released
	})
}

func TestCloseCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newSlow(t)
		got := make(chan error, 1)
		go func() {
			_, err := s.Acquire(t.Context(), []Span{{0, 7, 3}}, make([]uintptr, 1))
			got <- err
		}()
		<-r.asked
		_ = s.calls.Close(source.Patience)
		if err := <-got; err == nil || err.Error() != "arrowio: the dataset was closed during the read" {
			t.Errorf("got %v", err)
		}
		r.answer <- nil
		<-r.released
	})
}

// TestCloseEndsTheBackground: background work ends with Close, which does not wait
// for its patience to run out.
func TestCloseEndsTheBackground(t *testing.T) {
	mapsFiles(t)
	synctest.Test(t, func(t *testing.T) {
		files, _ := write(t, 100)
		s := newSet(t, files, Options{IO: "map", Memory: 1})
		s.background(func(ctx context.Context) error {
			<-ctx.Done()
			return files[0].populateAll(ctx)
		})
		before := time.Now()
		_ = s.calls.Close(source.Patience)
		if waited := time.Since(before); waited > 0 {
			t.Errorf("Close waited for %v", waited)
		}
		if files[0].ready.Load() > 0 {
			t.Error("populated after Close")
		}
	})
}

func TestReaderFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cause, want := range map[error]string{
			io.EOF:                  "arrowio: slow ends before the 1048576 bytes that it had when it was opened",
			errors.New("disk gone"): "arrowio: slow: disk gone",
		} {
			r, s := newSlow(t)
			go func() {
				<-r.asked
				r.answer <- cause
			}()
			_, err := s.Acquire(t.Context(), []Span{{0, 7, 3}}, make([]uintptr, 1))
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			_ = s.calls.Close(source.Patience)
		}
	})
}

// TestReadRechecks: a file that is read is checked again after a second.
func TestReadRechecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, _ := write(t, 100_000)
		old := time.Date(2020, 5, 6, 7, 8, 9, 0, time.UTC)
		touch := func(at time.Time) {
			if err := os.Chtimes(files[0].Name(), at, at); err != nil {
				t.Fatal(err)
			}
		}
		s := newSet(t, files, Options{IO: "read"})
		read := func() error {
			lease, err := s.Acquire(context.Background(), []Span{{0, 10, 10}}, make([]uintptr, 1))
			if err == nil {
				lease.Release()
			}
			return err
		}
		touch(old)
		if err := read(); err != nil {
			t.Errorf("within a second: %v", err)
		}
		time.Sleep(recheckAfter)
		if err := read(); status.CodeOf(err) != status.DataLoss {
			t.Errorf("after a second: %v", err)
		}
	})
}

// TestRechecksAllocateNothing: every read calls Recheck.
func TestRechecksAllocateNothing(t *testing.T) {
	files, _ := write(t, 10)
	defer files[0].Close()
	if n := testing.AllocsPerRun(100, func() { _ = files[0].Recheck() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
