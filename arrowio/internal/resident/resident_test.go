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
	"testing"
	"testing/synctest"
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
		s := newSet(t, files, c.o)
		if mapped := files[0].mapping != nil; mapped != c.mapped {
			t.Errorf("%+v: mapped %v", c.o, mapped)
		}
		s.waitForBackground()
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
}

// waitForBackground returns when the set has no users.
func (s *Set) waitForBackground() {
	for {
		s.mu.Lock()
		n := s.users
		s.mu.Unlock()
		if n == 0 {
			return
		}
		runtime.Gosched()
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

func TestShrunk(t *testing.T) {
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
		if _, err := s.Acquire(context.Background(), []Span{{0, 10, 10}}, make([]uintptr, 1)); err != nil {
			t.Errorf("%+v: what is left: %v", o, err)
		}
	}
}

// slow is a reader that answers when it is told to.
type slow struct {
	asked  chan int64
	answer chan error
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
	r := &slow{asked: make(chan int64), answer: make(chan error)}
	s, err := NewSet([]*File{OpenReader("slow", r, 1<<20)}, Options{})
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
		case <-s.released:
			t.Error("released under a read")
		default:
		}
		r.answer <- nil
		r.answer <- io.ErrUnexpectedEOF
		<-s.released
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
		<-s.released
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
		<-s.released
	})
}
