package resident

import (
	"bytes"
	"context"
	"errors"
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
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		files, content = append(files, f), append(content, data)
	}
	return files, content
}

func newSet(t *testing.T, files []*File, o Options) *Set {
	t.Helper()
	s, err := NewSet(files, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func at(address uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}

// readers of every kind give the bytes of random spans over several files.
func TestAcquire(t *testing.T) {
	for _, o := range []Options{{IO: "read"}, {IO: "auto"}, {IO: "auto", Memory: 1}, {IO: "map"}, {IO: "map", Memory: 1}} {
		if o.IO == "map" && !canPopulate() {
			continue
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
		s.Close()
		if _, err := s.Acquire(context.Background(), nil, nil); err == nil || err.Error() != "arrowio: the dataset is closed" {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			o          Options
			mapped     bool
			wholeInRAM bool
		}{
			{Options{}, true, true},
			{Options{IO: "auto", Memory: 400}, true, true},
			{Options{IO: "auto", Memory: 396}, false, false},
			{Options{IO: "read", Memory: 400}, false, false},
			{Options{IO: "map", Memory: 10}, true, false},
		} {
			if !canPopulate() {
				t.Skip("this system does not map")
			}
			files, _ := write(t, 100, 200)
			if files[0].remote() {
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
		_, err := NewSet(nil, Options{IO: "fast"})
		if want := `arrowio: io must be "auto", "map" or "read", not "fast"`; err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	})
}

// TestRegions: what lies close together is read at once, up to 1 MB, and closer
// is asked for where less than the file will be in memory.
func TestRegions(t *testing.T) {
	if !canPopulate() {
		t.Skip("nothing is mapped on this system")
	}
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

func TestShrunk(t *testing.T) { synctest.Test(t, testShrunk) }

func testShrunk(t *testing.T) {
	for _, o := range []Options{{IO: "read"}, {IO: "map", Memory: 1}} {
		if o.IO == "map" && !canPopulate() {
			continue
		}
		files, _ := write(t, 100_000)
		s := newSet(t, files, o)
		if err := files[0].Check(); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(files[0].Name(), 5000); err != nil {
			t.Fatal(err)
		}
		want := "arrowio: " + files[0].Name() + " ends before the 100000 bytes that it had when it was opened; do not write to a file while it is read: write another and rename it"
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

// slow is a reader that answers when it is told to.
type slow struct {
	asked    chan int64
	answer   chan error
	released chan struct{} // closed with its file
}

func (s *slow) ReadAt(p []byte, offset int64) (int, error) {
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
	f := OpenReader("slow", r, 1<<20)
	f.unwatch = func() { close(r.released) }
	s, err := NewSet([]*File{f}, Options{})
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
		runtime.GC() // nobody waits for the reader but who asked
		r.answer <- nil
		if err := <-got; err != nil {
			t.Error(err)
		}
		s.Close()
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
		s.Close() // returns, although both reads are stuck
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
		s.Close()
		if err := <-got; err == nil || err.Error() != "arrowio: the dataset was closed during the read" {
			t.Errorf("got %v", err)
		}
		r.answer <- nil
		<-r.released
	})
}

// What goes on in the background ends with Close, which need not be patient.
func TestCloseEndsTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if !canPopulate() {
			t.Skip("this system does not map")
		}
		files, _ := write(t, 100)
		s := newSet(t, files, Options{IO: "map", Memory: 1})
		s.background(func(ctx context.Context) error {
			<-ctx.Done()
			return files[0].populateAll(ctx)
		})
		before := time.Now()
		s.Close()
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
			s.Close()
		}
	})
}

// TestLeaseOutlivesClose: memory that somebody holds is not taken away.
func TestLeaseOutlivesClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, content := write(t, 100_000)
		s := newSet(t, files, Options{})
		to := make([]uintptr, 1)
		lease, err := s.Acquire(t.Context(), []Span{{0, 50_000, 1000}}, to)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if !bytes.Equal(at(to[0], 1000), content[0][50_000:51_000]) {
			t.Error("wrong bytes")
		}
		lease.Release()
		_ = s.gate.Close(0)
	})
}
