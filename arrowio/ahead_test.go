package arrowio

import (
	"io"
	"os"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
)

// TestAheadDecodes: a compressed record batch is read as soon as it is announced, without
// a gather, and a close ends that.
func TestAheadDecodes(t *testing.T) {
	s := &stuck{waiting: make(chan struct{}, 1), release: make(chan struct{})}
	d := openFileThrough(t, "../internal/arrowmeta/testdata/lz4.arrow", func(f *os.File) io.ReaderAt { s.File = f; return s })
	if got := source.CacheOf(d); got != d.cache.bound() {
		t.Errorf("a compressed file has a cache of %d bytes, want %d", got, d.cache.bound())
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

// TestAheadLeavesRoom: an announcement that has taken its part of the cache decodes no
// more.
func TestAheadLeavesRoom(t *testing.T) {
	d, err := OpenFiles(t.Context(), []string{"../internal/arrowmeta/testdata/lz4.arrow"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for left, want := range map[int64]bool{0: false, 1: true} {
		a := announced{left: new(atomic.Int64)}
		a.left.Store(left)
		d.ahead.pending, d.ahead.running = []announced{a}, 1
		(*store)(d).decodePending()
		if got := a.left.Load() < left; got != want || d.ahead.running != 0 {
			t.Errorf("room for %d bytes: decoded %v, %d goroutines", left, got, d.ahead.running)
		}
	}
	twice, err := view.Concat(d, d)
	if err != nil {
		t.Fatal(err)
	}
	if one, two := source.DecodingOf(d), source.DecodingOf(twice); one.Running <= 0 || two.Running != 2*one.Running || two.Waiting != 2*one.Waiting {
		t.Errorf("decoding took %+v, and %+v in a view of it twice", one, two)
	}
}
