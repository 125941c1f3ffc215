package blob_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/status"
)

func TestMemory(t *testing.T) {
	m := blobtest.Memory{}
	blobtest.Run(t, m, "dir", func(name string, data []byte) { m["dir/"+name] = data })
}

// TestCatalog tests a catalog of names with a scheme, a bucket, and parts that a path would lose.
func TestCatalog(t *testing.T) {
	m := blobtest.Memory{}
	blobtest.Run(t, m, "s3://bucket/dir", func(name string, data []byte) { m["s3://bucket/dir/"+name] = data })
	c := blob.Catalog{Blobs: []blob.Entry{{Name: "s3://b/k//x", Version: "1", Size: 5}, {Name: "s3://b/k/x"}, {Name: "s3://b/k/"}, {Name: "top"}}}
	for pattern, want := range map[string][]blob.Entry{
		"s3://b/k//?": {{Name: "s3://b/k//x", Version: "1", Size: 5}},
		"s3://b/k/*":  {{Name: "s3://b/k//", Dir: true}, {Name: "s3://b/k/x"}},
		"s3://*/k":    {{Name: "s3://b/k", Dir: true}},
		"t*":          {{Name: "top"}},
		"s3:*":        nil,
	} {
		if got, err := c.Glob(t.Context(), pattern); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v", pattern, got, err)
		}
	}
	if _, err := c.Glob(t.Context(), "[/x"); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a pattern without an end: %v", err)
	}
	for dir, want := range map[string]string{".": "[top]", "s3://": "[b]", "s3://b": "[k]", "s3://b/k": "[ x]", "s3://b/k//": "[x]"} {
		list, err := c.List(t.Context(), dir)
		var names []string
		for _, e := range list {
			names = append(names, e.Name)
		}
		if err != nil || fmt.Sprint(names) != want {
			t.Errorf("%s: %q, %v", dir, names, err)
		}
	}
}

func TestSlashes(t *testing.T) {
	for name, want := range map[string][2]string{
		"a": {".", "a"}, "a/b": {"a", "b"}, "a/b/": {"a", "b"}, "/a": {"/", "a"}, "/": {"/", "/"}, ".": {".", "."},
		"s3://b/k//x": {"s3://b/k//", "x"}, "s3://b/k//": {"s3://b/k", ""}, "s3://b/x": {"s3://b", "x"}, "s3://b": {"s3://", "b"}, "s3://": {"s3://", "s3://"}, "file:///a": {"file:///", "a"},
	} {
		if dir, base := (blob.Slashes{}).Split(name); [2]string{dir, base} != want {
			t.Errorf("%s: %q and %q", name, dir, base)
		}
	}
	for want, dir := range map[string]string{"a/x": "a", "x": ".", "/x": "/", "s3://b/x": "s3://b", "s3://x": "s3://", "s3://b//x": "s3://b//"} {
		if got := (blob.Slashes{}).Join(dir, "x"); got != want {
			t.Errorf("%s: %s", dir, got)
		}
	}
}

// TestEmptyParts tests every short name with empty parts: a search from the roots finds the blob by
// its name, directory by directory. It finds no blob with a name that ends in a slash.
func TestEmptyParts(t *testing.T) {
	for _, root := range []string{"", "s3://", "s3://b/"} {
		for bits := range 1 << 7 {
			name := root
			for n := bits + 1; n > 1; n /= 2 {
				name += string("a/"[n%2])
			}
			if name == "" || name == "s3://" {
				continue
			}
			var want []string
			if !strings.HasSuffix(name, "/") {
				want = []string{name}
			}
			c := blob.Catalog{Blobs: []blob.Entry{{Name: name}}}
			if got := slices.Concat(walk(t, c, "."), walk(t, c, "/"), walk(t, c, "s3://")); !slices.Equal(got, want) {
				t.Errorf("%s: the search finds %q", name, got)
			}
		}
	}
}

// walk returns all blobs below a directory.
func walk(t *testing.T, c blob.Catalog, dir string) (names []string) {
	list, err := c.List(t.Context(), dir)
	if _, stat := c.Stat(t.Context(), dir); status.CodeOf(err) != status.CodeOf(stat) {
		t.Errorf("%s: List says %v, and Stat %v", dir, err, stat)
	}
	matches, _ := c.Glob(t.Context(), c.Join(dir, "*"))
	for i, e := range list {
		name := c.Join(dir, e.Name)
		if name == dir {
			t.Fatalf("%s is in itself", dir)
		}
		if up, base := c.Split(name); up != dir || base != e.Name {
			t.Errorf("%s is divided into %s and %s", name, up, base)
		}
		if len(matches) != len(list) || matches[i].Name != name || matches[i].Dir != e.Dir {
			t.Errorf("%s: List returns %v, and Glob %v", dir, list, matches)
		}
		if e.Dir {
			names = append(names, walk(t, c, name)...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

func TestReadFull(t *testing.T) {
	b, p := blobtest.Bytes("x", bytes.NewReader([]byte("abc"))), make([]byte, 2)
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		if err := blob.ReadFull(ctx, b, p, 1); err != nil || string(p) != "bc" {
			t.Errorf("%q, %v", p, err)
		}
		if err := blob.ReadFull(ctx, b, p, 2); err != io.ErrUnexpectedEOF {
			t.Errorf("beyond the end: %v", err)
		}
	}
}

// hung is a disk that does not answer.
type hung struct {
	*bytes.Reader
	asked, release chan struct{}
}

func (h hung) ReadAt([]byte, int64) (int, error) {
	close(h.asked)
	<-h.release
	return 0, io.EOF
}

// TestCancelledReadReturns: the read returns although the disk does not.
func TestCancelledReadReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hung{bytes.NewReader([]byte("abc")), make(chan struct{}), make(chan struct{})}
		defer close(h.release)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		go func() {
			_, err := blob.Reader(ctx, blobtest.Bytes("x", h)).ReadAt(make([]byte, 1), 0)
			got <- err
		}()
		<-h.asked
		cancel()
		if err := <-got; status.CodeOf(err) != status.Cancelled || err.Error() != "arrowio: the read was cancelled" {
			t.Errorf("got %v", err)
		}
	})
}
