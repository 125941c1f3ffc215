// Package blobtest has the tests that every implementation of package blob must
// pass. It also has an implementation in memory, for tests of code that reads blobs.
package blobtest

import (
	"bytes"
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// Memory is an opener of blobs in memory, by name. Names have no "..".
type Memory map[string][]byte

// Stat implements blob.Opener.
func (m Memory) Stat(ctx context.Context, name string) (blob.Info, error) {
	if err := ctx.Err(); err != nil {
		return blob.Info{}, err
	}
	info := blob.Info{Full: "memory:" + name}
	if m[name] != nil {
		return info, nil
	}
	for other := range m {
		info.Dir = info.Dir || name == "." || strings.HasPrefix(other, name+"/")
	}
	if !info.Dir {
		return info, missing(name)
	}
	return info, nil
}

// List implements blob.Opener.
func (m Memory) List(_ context.Context, dir string) ([]blob.Entry, error) {
	var list []blob.Entry
	for name := range m {
		below, inside := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			below, inside = name, true
		}
		first, _, deeper := strings.Cut(below, "/")
		if e := (blob.Entry{Name: first, Dir: deeper}); inside && !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	if list == nil {
		return nil, missing(dir)
	}
	slices.SortFunc(list, func(a, b blob.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Open implements blob.Opener.
func (m Memory) Open(_ context.Context, name string) (blob.Blob, error) {
	data := m[name]
	if data == nil {
		return nil, missing(name)
	}
	return Bytes(name, bytes.NewReader(data)), nil
}

func missing(name string) error {
	return status.Errorf(status.NotFound, "blobtest", "%s does not exist", name).With("path", name)
}

// SizedReader is an io.ReaderAt with a size.
type SizedReader interface {
	io.ReaderAt
	Size() int64
}

// Bytes returns a blob that reads from r.
func Bytes(name string, r SizedReader) blob.Blob { return memory{r, path.Clean(name)} }

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
	data := []byte("some bytes of a blob")
	put("a.arrow", data)
	put("b/c.arrow", []byte{1})
	name, ctx := dir+"/a.arrow", t.Context()

	t.Run("Stat", func(t *testing.T) {
		for name, isDir := range map[string]bool{"a.arrow": false, "b": true, "b/c.arrow": false} {
			if info, err := o.Stat(ctx, dir+"/"+name); err != nil || info.Dir != isDir || !strings.HasSuffix(info.Full, name) {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
	})
	t.Run("List", func(t *testing.T) {
		want := []blob.Entry{{Name: "a.arrow"}, {Name: "b", Dir: true}}
		if got, err := o.List(ctx, dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("Missing", func(t *testing.T) {
		_, stat := o.Stat(ctx, dir+"/none")
		_, list := o.List(ctx, dir+"/none")
		_, open := o.Open(ctx, dir+"/none")
		for _, err := range []error{stat, list, open} {
			if status.CodeOf(err) != status.NotFound {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("Blob", func(t *testing.T) {
		b, err := o.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if b.Size() != int64(len(data)) || b.Name() != name || b.Check() != nil {
			t.Errorf("%s has %d bytes; Check: %v", b.Name(), b.Size(), b.Check())
		}
		reads(t, b, data)
	})
	t.Run("Identity", func(t *testing.T) {
		var keys []string
		for _, name := range []string{"/a.arrow", "/a.arrow", "/b/c.arrow"} {
			b, err := o.Open(ctx, dir+name)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			keys = append(keys, b.Identity())
		}
		if keys[0] != keys[1] || keys[0] == keys[2] {
			t.Errorf("%q", keys)
		}
	})
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
