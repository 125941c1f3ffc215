package parts

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestMadeInMemory checks the bound on what is kept in memory, and the reason that its error gives.
func TestMadeInMemory(t *testing.T) {
	for path, want := range map[string]string{"memory": "and they have more; choose a folder for them", t.TempDir(): "may have 1048576 bytes, and what is in use leaves no room; choose a folder for them"} {
		m := NewMade(Options{Path: path, Limit: 1 << 20, Opener: local.Opener{}})
		write := func(w io.Writer) error {
			_, err := w.Write(make([]byte, 2<<20))
			return err
		}
		kept, err := m.Of(t.Context(), file(t), "x", write)
		if err != nil || kept.Size != 2<<20 {
			t.Fatal(kept.Size, err)
		}
		m.held.Add(MaxMade - 3<<20)
		_, err = m.Of(t.Context(), file(t), "x", write)
		if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestMadeFails checks that nothing is kept of a making that fails, and that two calls at a time make
// one entry.
func TestMadeFails(t *testing.T) {
	m, b := NewMade(Options{Path: t.TempDir(), Opener: local.Opener{}}), file(t)
	cause := errors.New("the cause")
	if _, err := m.Of(t.Context(), b, "x", func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return cause
	}); err != cause {
		t.Errorf("got %v, want %v", err, cause)
	}
	begun, done := make(chan bool), make(chan string)
	read := func(write func(w io.Writer) error) {
		kept, err := m.Of(t.Context(), b, "x", write)
		if err != nil {
			done <- err.Error()
			return
		}
		text := make([]byte, kept.Size)
		_, err = kept.ReadAt(text, 0)
		done <- string(text)
		if err = errors.Join(err, kept.Close()); err != nil {
			t.Error(err)
		}
	}
	go read(func(w io.Writer) error {
		begun <- true
		<-begun
		_, err := w.Write([]byte("whole"))
		return err
	})
	<-begun
	go read(func(io.Writer) error { return errors.New("made twice") })
	begun <- true
	if a, b := <-done, <-done; a != "whole" || b != "whole" {
		t.Errorf("got %q and %q", a, b)
	}
}

func file(t *testing.T) blob.Blob {
	b, err := local.Opener{}.Open(t.Context(), blob.Entry{Name: "made_test.go"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}
