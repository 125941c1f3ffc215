package resident

import (
	"os"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

// watcher is a FaultHandler that records its calls.
type watcher struct {
	t        *testing.T
	watching map[*byte]int // the sizes of the mappings, by their first byte
	faulted  []*uint32
	armed    int
	first    byte
}

func (w *watcher) Watch(mapping []byte) (*uint32, func()) {
	if w.watching == nil {
		w.watching = map[*byte]int{}
	}
	begin, mark := &mapping[0], new(uint32)
	w.watching[begin] = len(mapping)
	w.faulted = append(w.faulted, mark)
	return mark, func() {
		w.first = *begin // which is still mapped
		if _, known := w.watching[begin]; !known {
			w.t.Error("the end of a watch came twice")
		}
		delete(w.watching, begin)
	}
}

func (w *watcher) Arm() { w.armed++ }

// TestFaultHandler: mappings are watched as long as they exist. A mark on one is an
// error of its file alone.
func TestFaultHandler(t *testing.T) {
	mapsFiles(t)
	files, _ := write(t, 5000, 0, 100_000)
	w := &watcher{t: t}
	s := newSet(t, files, Options{IO: "map", Memory: plenty, FaultHandler: w})
	if len(w.watching) != 2 || len(w.faulted) != 2 {
		t.Fatalf("watches %d mappings of two files with bytes and one without", len(w.watching))
	}
	if s.Arm(); w.armed != 1 {
		t.Errorf("armed %d times", w.armed)
	}
	*w.faulted[1] = 1
	for i, want := range []string{"", "", "arrowio: " + files[2].Name() + " could not be read from its mapping; " +
		"the disk failed, or the file was cut and grew again: open it again"} {
		got := ""
		if err := files[i].Check(); err != nil {
			got = err.Error()
			if status.CodeOf(err) != status.DataLoss {
				t.Errorf("file %d: code %v", i, status.CodeOf(err))
			}
		}
		if got != want {
			t.Errorf("file %d:\ngot  %s\nwant %s", i, got, want)
		}
	}
	_ = s.calls.Close(0)
	if len(w.watching) != 0 {
		t.Errorf("%d mappings are still watched", len(w.watching))
	}
}

// TestFaultHandlerOfFilesThatAreRead: without a mapping the handler is not called.
func TestFaultHandlerOfFilesThatAreRead(t *testing.T) {
	files, _ := write(t, 5000)
	w := &watcher{t: t}
	s := newSet(t, files, Options{IO: "read", FaultHandler: w})
	if s.Arm(); w.armed != 0 || len(w.faulted) != 0 {
		t.Errorf("armed %d times, watches %d", w.armed, len(w.faulted))
	}
}

// TestTruncationIsReportedBeforeFault: after a fault in a truncated file, Check
// returns the error of the truncation, because it explains the fault.
func TestTruncationIsReportedBeforeFault(t *testing.T) {
	mapsFiles(t)
	files, _ := write(t, 5000)
	w := &watcher{t: t}
	newSet(t, files, Options{IO: "map", Memory: plenty, FaultHandler: w})
	*w.faulted[0] = 1
	if err := os.Truncate(files[0].Name(), 4000); err != nil {
		t.Fatal(err)
	}
	want := truncatedError(files[0])
	if err := files[0].Check(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
