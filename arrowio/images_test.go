package arrowio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

// imageFiles are the files of a folder. The paths of its images have the order of torchvision's ImageFolder.
var (
	imageFiles = []string{
		"top.jpg", "notes.txt", ".cache/a.jpg", "cat/b.PNG", "cat/a.jpg", "cat/.hidden.jpg", "cat/readme.md", "cat/sub/x.webp", "cat/sub-a/y.jpeg", "cat/sub/deep/z.bmp",
		"Dog/1.jpg", "Dog/10.jpg", "Dog/2.jpg", "_bird/é.png", "ant/empty.tiff",
	}
	imageOrder = []string{
		"Dog/1.jpg", "Dog/10.jpg", "Dog/2.jpg", "_bird/é.png", "ant/empty.tiff", "cat/a.jpg", "cat/b.PNG", "cat/sub/x.webp", "cat/sub-a/y.jpeg", "cat/sub/deep/z.bmp",
	}
	imageClasses = []string{"Dog", "_bird", "ant", "cat"}
)

// imageOf returns the bytes of an image of a test.
func imageOf(name string) []byte {
	if strings.Contains(name, "empty") {
		return []byte{}
	}
	return bytes.Repeat([]byte(name), 1+len(name)*97)
}

// identified is an opener without versions, so that only the identity of a blob tells that it changed.
type identified struct {
	blobtest.Memory
	changed *string // the name of a blob that has another identity now
}

func (o identified) List(ctx context.Context, dir string) ([]blob.Entry, error) {
	list, err := o.Memory.List(ctx, dir)
	for i := range list {
		list[i].Version, list[i].Size = "", 0
	}
	return list, err
}

func (o identified) Stat(ctx context.Context, name string) (blob.Entry, error) {
	e, err := o.Memory.Stat(ctx, name)
	return blob.Entry{Name: e.Name, Dir: e.Dir}, err
}

func (o identified) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	b, err := o.Memory.Open(ctx, e)
	return replaced{b, e.Name == *o.changed}, err
}

type replaced struct {
	blob.Blob
	changed bool
}

func (b replaced) Identity() string { return fmt.Sprint(b.Blob.Identity(), b.changed) }

// TestImages opens a folder in storages with and without versions, compares all rows, and runs the tests of
// sources.
func TestImages(t *testing.T) {
	local, memory, none := t.TempDir(), blobtest.Memory{}, ""
	for _, name := range imageFiles {
		path := filepath.Join(local, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, imageOf(name), 0o600); err != nil {
			t.Fatal(err)
		}
		memory["set/"+name] = imageOf(name)
	}
	var prints []source.Fingerprint
	for _, c := range []struct {
		dir    string
		opener blob.Opener
	}{{local, nil}, {local + "/", nil}, {"set", memory}, {"set", identified{memory, &none}}} {
		o := arrowio.Options{Images: true, Opener: c.opener, Cache: "memory"}
		open := func(t *testing.T) source.Source {
			ds, err := arrowio.OpenFiles(t.Context(), []string{c.dir}, o)
			if err != nil {
				t.Fatal(err)
			}
			return ds
		}
		ds := open(t).(*arrowio.Dataset)
		checkImages(t, ds)
		prints = append(prints, verified(t, ds))
		_ = ds.Close()
		if c.dir == "set" || c.dir == local {
			sourcetest.Run(t, open)
		}
	}
	if slices.ContainsFunc(prints, func(p source.Fingerprint) bool { return p != prints[0] }) {
		t.Errorf("a storage gives another fingerprint: %v", prints)
	}
}

func checkImages(t *testing.T, ds *arrowio.Dataset) {
	t.Helper()
	fields := ds.Schema().Fields
	if ds.Len() != int64(len(imageOrder)) || len(fields) != 3 || !slices.Equal(fields[1].Names, imageClasses) {
		t.Fatalf("%d records, fields %+v", ds.Len(), fields)
	}
	r, err := ds.Reader([]int{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var spans []source.Span
	for i := range imageOrder {
		for f := range fields {
			spans = append(spans, source.Span{Field: f, Record: int64(i)})
		}
	}
	err = r.Read(t.Context(), source.Draw{}, spans, func() error {
		for i, name := range imageOrder {
			class, _, _ := strings.Cut(name, "/")
			label := int64(binary.LittleEndian.Uint64(spans[3*i+1].Row))
			if got := string(spans[3*i+2].Row); got != name || !bytes.Equal(spans[3*i].Row, imageOf(name)) || imageClasses[label] != class {
				t.Errorf("record %d: %s of class %d with %d bytes, not %s", i, got, label, len(spans[3*i].Row), name)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestChangedImages: an image that changed, grew, was cut or is gone is an error when it is read.
func TestChangedImages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "x.jpg")
	_ = os.Mkdir(filepath.Dir(path), 0o700)
	for name, change := range map[string]func() error{
		"another file":                            func() error { return os.Chtimes(path, time.Unix(7, 0), time.Unix(7, 0)) },
		"it has 9 bytes":                          func() error { return os.WriteFile(path, []byte("xxxxxxxxx"), 0o600) },
		"is gone":                                 func() error { return os.Remove(path) },
		"its modification time is another one":    func() error { return os.Chtimes(path, time.Unix(7, 0), time.Unix(7, 0)) },
		"its size or its modification time is an": func() error { return os.Truncate(path, 2) },
	} {
		if err := os.WriteFile(path, []byte("abcde"), 0o600); err != nil {
			t.Fatal(err)
		}
		o, now := arrowio.Options{Images: true}, ""
		if name == "another file" || name == "it has 9 bytes" {
			memory := blobtest.Memory{"set/a/x.jpg": []byte("abcde")}
			o.Opener = identified{memory, &now}
			change = func() error { now = "set/a/x.jpg"; return nil }
			if name == "it has 9 bytes" {
				change = func() error { memory["set/a/x.jpg"] = []byte("xxxxxxxxx"); return nil }
			}
		}
		folder := dir
		if o.Opener != nil {
			folder = "set"
		}
		ds, err := arrowio.OpenFiles(t.Context(), []string{folder}, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		_, err = readRagged(ds, 0, []int64{0})
		if status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "x.jpg") {
			t.Errorf("%s: %v", name, err)
		}
		_ = ds.Close()
	}
}

// TestImagesRefused gives folders without classes or images, and options that do not fit.
func TestImagesRefused(t *testing.T) {
	memory := blobtest.Memory{
		"flat/a.jpg": {1}, "half/a/x.jpg": {1}, "half/b/x.txt": {1}, "names/a/\xff.jpg": {1}, "ok/a/x.jpg": {1}, "other/b/x.jpg": {1},
	}
	for _, c := range []struct {
		paths []string
		o     arrowio.Options
		code  status.Code
		want  string
	}{
		{[]string{"flat"}, arrowio.Options{}, status.NotFound, "flat: there is no folder of a class in it; images=True takes a folder that has a folder for each class"},
		{[]string{"flat/a.jpg"}, arrowio.Options{}, status.InvalidArgument, "flat/a.jpg: this is a file"},
		{[]string{"none"}, arrowio.Options{}, status.NotFound, "none does not exist"},
		{[]string{"half"}, arrowio.Options{}, status.NotFound, `half: the folder of the class "b" has no image (.jpg, .jpeg`},
		{[]string{"names"}, arrowio.Options{}, status.Unsupported, "is not UTF-8; rename it"},
		{[]string{"ok"}, arrowio.Options{Split: "train"}, status.InvalidArgument, "a folder of images has no splits"},
		{[]string{"ok", "other"}, arrowio.Options{}, status.Incompatible, `other: field "label" stands for other classes than in ok`},
		{[]string{"ok", "ok"}, arrowio.Options{}, status.InvalidArgument, "are the same file"},
		{[]string{"ok"}, arrowio.Options{IO: "map"}, status.Unsupported, `ok: io "map" needs a local file`},
	} {
		c.o.Images, c.o.Opener = true, memory
		ds, err := arrowio.OpenFiles(t.Context(), c.paths, c.o)
		if err == nil {
			_ = ds.Close()
		}
		if status.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v: %v, want %v: %s", c.paths, status.CodeOf(err), err, c.code, c.want)
		}
	}
}
