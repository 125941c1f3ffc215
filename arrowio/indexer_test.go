package arrowio_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

// archive returns an archive with at most n records. Not every record has every file, and some have none.
func archive(t testing.TB, n int) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := range n {
		for k, end := range []string{"jpg", "cls", "seg.png"} {
			data := bytes.Repeat([]byte{byte(i)}, (i*37+k*5)%600)
			if i%(k+2) == 1 {
				continue
			}
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("folder/%05d.%s", i, end), Size: int64(len(data)), Mode: 0o600}); err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write(data)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestArchives runs the tests of sources on archives in a storage.
func TestArchives(t *testing.T) {
	memory := blobtest.Memory{"a.tar": archive(t, 50), "b.TAR": archive(t, 7)}
	sourcetest.Run(t, func(t *testing.T) source.Source {
		ds, err := arrowio.OpenFiles(t.Context(), []string{"a.tar", "b.TAR"}, arrowio.Options{Opener: memory})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	})
	ds, err := arrowio.OpenFiles(t.Context(), []string{"a.tar"}, arrowio.Options{Opener: memory})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if _, err := ds.Verify(t.Context(), arrowio.VerifyOptions{Hash: true}); err != nil {
		t.Error(err)
	}
	if want := (arrowio.FileInfo{Path: "a.tar", Format: "tar", Records: 45, Batches: 1, LargestBatch: 45, Bytes: ds.Files()[0].Bytes}); ds.Files()[0] != want {
		t.Errorf("got %+v, want %+v", ds.Files()[0], want)
	}
}

// FuzzArchives opens arbitrary bytes. What opens has rows that can all be read.
func FuzzArchives(f *testing.F) {
	f.Add(archive(f, 3))
	f.Add(archive(f, 9)[:3000])
	f.Fuzz(func(t *testing.T, data []byte) {
		ds, err := arrowio.OpenFiles(t.Context(), []string{"a.tar"}, arrowio.Options{Opener: blobtest.Memory{"a.tar": data}})
		if err != nil {
			if status.CodeOf(err) == status.Internal {
				t.Error(err)
			}
			return
		}
		defer ds.Close()
		readEverything(t, ds)
	})
}
