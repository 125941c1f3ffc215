package arrowio

import (
	"io"
	"os"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/decoded"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
)

// TestAheadDecodes: a compressed record batch is read as soon as it is announced, without
// a gather, and a close ends that.
func TestAheadDecodes(t *testing.T) {
	s := &stuck{waiting: make(chan struct{}, 1), release: make(chan struct{})}
	d := openFileThrough(t, "../internal/arrowmeta/testdata/lz4.arrow", func(f *os.File) io.ReaderAt { s.File = f; return s })
	if got := source.CacheOf(d); got != decoded.Bytes {
		t.Errorf("a compressed file has a cache of %d bytes, want %d", got, int64(decoded.Bytes))
	}
	g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
	s.hangs.Store(true)
	g.Ahead(source.Draw{}, []int64{-1, d.Len(), 0})
	<-s.waiting
	close(s.release)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestDecodingOfViews: a view counts the decodings of each dataset below it.
func TestDecodingOfViews(t *testing.T) {
	d, err := OpenFiles(t.Context(), []string{"../internal/arrowmeta/testdata/lz4.arrow"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Verify(t.Context(), VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	twice, err := view.Concat(d, d)
	if err != nil {
		t.Fatal(err)
	}
	if one, two := source.DecodingOf(d), source.DecodingOf(twice); one.Running <= 0 || two.Running != 2*one.Running || two.Waiting != 2*one.Waiting {
		t.Errorf("decoding took %+v, and %+v in a view of it twice", one, two)
	}
}
