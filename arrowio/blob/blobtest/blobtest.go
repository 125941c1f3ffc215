// Package blobtest has the tests that every implementation of package blob must
// pass. It also has an implementation in memory, for tests of code that reads blobs.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// Memory is an opener of blobs in memory, by name.
type Memory map[string][]byte

func (m Memory) catalog() (c blob.Catalog) {
	for name, data := range m {
		c.Blobs = append(c.Blobs, blob.Entry{Name: name, Size: int64(len(data)), Version: "memory"})
	}
	return c
}

// Join implements blob.Names.
func (Memory) Join(dir, below string) string { return blob.Slashes{}.Join(dir, below) }

// Split implements blob.Names.
func (Memory) Split(name string) (dir, base string) { return blob.Slashes{}.Split(name) }

// Full implements blob.Names.
func (Memory) Full(name string) string { return "memory:" + name }

// Stat implements blob.Opener.
func (m Memory) Stat(ctx context.Context, name string) (blob.Entry, error) {
	return m.catalog().Stat(ctx, name)
}

// List implements blob.Opener.
func (m Memory) List(ctx context.Context, dir string) ([]blob.Entry, error) {
	return m.catalog().List(ctx, dir)
}

// Glob implements blob.Opener.
func (m Memory) Glob(ctx context.Context, pattern string) ([]blob.Entry, error) {
	return m.catalog().Glob(ctx, pattern)
}

// Open implements blob.Opener.
func (m Memory) Open(_ context.Context, e blob.Entry) (blob.Blob, error) {
	data := m[e.Name]
	if data == nil {
		return nil, status.Errorf(status.NotFound, "blobtest", "%s does not exist", e.Name).With("path", e.Name)
	}
	return Bytes(e.Name, bytes.NewReader(data)), nil
}

// Hints implements blob.Opener.
func (Memory) Hints() blob.Hints { return blob.Disk }

// SizedReader is an io.ReaderAt with a size.
type SizedReader interface {
	io.ReaderAt
	Size() int64
}

// Bytes returns a blob that reads from r.
func Bytes(name string, r SizedReader) blob.Blob { return memory{r, name} }

type memory struct {
	SizedReader
	name string
}

func (m memory) Name() string     { return m.name }
func (m memory) Identity() string { return m.name }
func (m memory) Check() error     { return nil }
func (m memory) Close() error     { return nil }

func (m memory) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return m.SizedReader.ReadAt(p, offset)
}

// Run tests an opener. put must create a blob with the given name in the folder dir.
func Run(t *testing.T, o blob.Opener, dir string, put func(name string, data []byte)) {
	put("a.arrow", content)
	put("b/c.arrow", []byte{1})
	put("b/.d", []byte{2})
	s := suite{o, dir}
	t.Run("Names", s.names)
	t.Run("Stat", s.stat)
	t.Run("List", s.list)
	t.Run("Glob", s.glob)
	t.Run("Missing", s.missing)
	t.Run("Hints", s.hints)
	t.Run("Blob", s.blob)
	t.Run("Identity", s.identity)
}

// content is what a.arrow holds.
var content = []byte("some bytes of a blob")

// suite tests an opener in a folder with the blobs of Run.
type suite struct {
	blob.Opener
	dir string
}

// names tests the syntax of names.
func (s suite) names(t *testing.T) {
	inner := s.Join(s.dir, "b/c.arrow")
	up, base := s.Split(inner)
	if upper, between := s.Split(up); base != "c.arrow" || between != "b" || upper != s.dir {
		t.Errorf("%s is divided into %s, %s and %s", inner, upper, between, base)
	}
	full := s.Full(s.Join(s.dir, "a.arrow"))
	if !strings.HasSuffix(full, "a.arrow") || s.Full(full) != full && !strings.HasSuffix(s.Full(full), full) {
		t.Errorf("the full name is %s", full)
	}
	for top, steps := s.dir, 0; ; steps++ {
		up, _ := s.Split(top)
		if up == top {
			break
		}
		if top = up; steps > 100 {
			t.Fatalf("%s has no outermost directory", s.dir)
		}
	}
}

func (s suite) stat(t *testing.T) {
	for below, isDir := range map[string]bool{"a.arrow": false, "b": true, "b/c.arrow": false} {
		name := s.Join(s.dir, below)
		if e, err := s.Stat(t.Context(), name); err != nil || e.Dir != isDir || e.Name != name || e.Version != "" && !isDir && e.Size == 0 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func (s suite) list(t *testing.T) {
	got, err := s.List(t.Context(), s.dir)
	if err != nil || len(got) != 2 || got[0].Name != "a.arrow" || got[0].Dir || got[1].Name != "b" || !got[1].Dir {
		t.Fatalf("%v, %v", got, err)
	}
	if got[0].Version != "" && got[0].Size != int64(len(content)) {
		t.Errorf("the listing has a blob of %d bytes", got[0].Size)
	}
}

func (s suite) glob(t *testing.T) {
	for pattern, want := range map[string][]string{
		"*": {"a.arrow", "b"}, "?.arrow": {"a.arrow"}, "*/[ac].arrow": {"b/c.arrow"}, "b/*": {"b/.d", "b/c.arrow"}, "*/none": nil, "none/*": nil, "*/*/*": nil,
	} {
		got, err := s.Glob(t.Context(), s.Join(s.dir, pattern))
		var names []string
		for _, e := range got {
			names = append(names, e.Name)
			if e.Dir != strings.HasSuffix(e.Name, "b") {
				t.Errorf("%s: %+v", pattern, e)
			}
		}
		slices.Sort(names)
		for i := range want {
			want[i] = s.Join(s.dir, want[i])
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: %q, %v", pattern, names, err)
		}
	}
}

// missing tests the errors for a name without a blob.
func (s suite) missing(t *testing.T) {
	none := s.Join(s.dir, "none")
	_, stat := s.Stat(t.Context(), none)
	_, list := s.List(t.Context(), none)
	_, open := s.Open(t.Context(), blob.Entry{Name: none})
	for _, err := range []error{stat, list, open} {
		e, ok := errors.AsType[*status.Error](err)
		if !ok || e.Code != status.NotFound || e.Attr("path") != none {
			t.Errorf("got %v", err)
		}
	}
}

func (s suite) hints(t *testing.T) {
	if err := s.Hints().Check(); err != nil {
		t.Error(err)
	}
}

// blob tests a blob that is opened by its entry.
func (s suite) blob(t *testing.T) {
	name := s.Join(s.dir, "a.arrow")
	e, err := s.Stat(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Open(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Size() != int64(len(content)) || b.Name() != name || b.Check() != nil {
		t.Errorf("%s has %d bytes; Check: %v", b.Name(), b.Size(), b.Check())
	}
	reads(t, b, content)
}

// identity opens two blobs, one of them twice.
func (s suite) identity(t *testing.T) {
	var keys, versions []string
	for _, name := range []string{"a.arrow", "a.arrow", "b/c.arrow"} {
		b, err := s.Open(t.Context(), blob.Entry{Name: s.Join(s.dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		keys = append(keys, b.Identity())
		if v, ok := b.(blob.Versioned); ok {
			versions = append(versions, v.Version())
		}
	}
	if keys[0] != keys[1] || keys[0] == keys[2] {
		t.Errorf("%q", keys)
	}
	if versions != nil && (len(versions) != 3 || versions[0] != versions[1] || versions[0] == versions[2]) {
		t.Errorf("versions %q", versions)
	}
}

// reads tests reads of a blob: within it, up to its end, beyond its end, and after the
// context has ended.
func reads(t *testing.T, b blob.Blob, data []byte) {
	t.Helper()
	p := make([]byte, 5)
	for _, at := range []int{0, 3, len(data) - 5} {
		if n, err := b.ReadAt(t.Context(), p, int64(at)); n != 5 || err != nil && err != io.EOF || !bytes.Equal(p, data[at:at+5]) {
			t.Errorf("at %d: %d bytes %q, %v", at, n, p, err)
		}
	}
	if n, err := b.ReadAt(t.Context(), p, int64(len(data)-2)); n != 2 || err != io.EOF {
		t.Errorf("beyond the end: %d bytes, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.ReadAt(ctx, p, 0); status.CodeOf(err) != status.Cancelled {
		t.Errorf("after the context ended: %v", err)
	}
}
