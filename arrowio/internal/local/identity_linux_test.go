package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/core/status"
)

// old is a modification time before every write of a test.
var old = time.Date(2020, 5, 6, 7, 8, 9, 123456000, time.UTC)

// newAged makes a file of 100,000 bytes, last written to at old, and opens it.
func newAged(t *testing.T) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	setTimes(t, path, old, old)
	f, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// overwrite writes some bytes in the middle of a file.
func overwrite(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("new"), 50_000); err != nil {
		t.Fatal(err)
	}
}

func setTimes(t *testing.T, path string, accessed, modified time.Time) {
	t.Helper()
	if err := os.Chtimes(path, accessed, modified); err != nil {
		t.Fatal(err)
	}
}

const renameIt = "; do not write to a file while it is read: write another and rename it; open the dataset again to read what the file holds now"

// TestChanged: every change that may have changed the content is an error that
// names the file and the times.
func TestChanged(t *testing.T) {
	later := old.Add(time.Hour)
	for name, c := range map[string]struct {
		change func(path string)
		want   string // NOW stands for the time of the status change
	}{
		"overwritten": {func(path string) { overwrite(t, path); setTimes(t, path, old, later) },
			"its modification time is 2020-05-06T08:08:09.123456Z, and was 2020-05-06T07:08:09.123456Z"},
		"set to an earlier time": {func(path string) { setTimes(t, path, old, old.Add(-time.Nanosecond)) },
			"its modification time is 2020-05-06T07:08:09.123455999Z, and was 2020-05-06T07:08:09.123456Z"},
		"overwritten, and the time set back": {func(path string) { overwrite(t, path); setTimes(t, path, old, old) },
			"its status change time is NOW, and was OPENED; its modification time was set back to 2020-05-06T07:08:09.123456Z"},
		"longer": {func(path string) {
			if err := os.Truncate(path, 100_001); err != nil {
				t.Fatal(err)
			}
		}, "it has 100001 bytes, and had 100000"},
	} {
		f := newAged(t)
		opened := f.identity.Load().changed
		untilLater(t, f.Name(), opened)
		c.change(f.Name())
		now, err := f.identityNow()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer("NOW", utc(now.changed), "OPENED", utc(opened)).Replace(c.want)
		want = "arrowio: " + f.Name() + " has changed since it was opened: " + want + renameIt
		if err := f.Check(); err == nil || err.Error() != want || status.CodeOf(err) != status.DataLoss {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
	}
}

// untilLater waits until the file system's clock, which may tick every few
// milliseconds, passes a time.
func untilLater(t *testing.T, path string, than int64) {
	t.Helper()
	probe := filepath.Join(filepath.Dir(path), "probe")
	for {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(probe)
		if err != nil {
			t.Fatal(err)
		}
		if info.ModTime().UnixNano() > than {
			return
		}
	}
}

// TestSameContent: other attributes, an access and another file under the name
// leave the content as it was. A write after them is noticed.
func TestSameContent(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(path string){
		"other rights": func(path string) { must(os.Chmod(path, 0o640)) },
		"a link more":  func(path string) { must(os.Link(path, path+"2")) },
		"removed":      func(path string) { must(os.Remove(path)) },
		"renamed":      func(path string) { must(os.Rename(path, path+"3")) },
		"a path gone":  func(path string) { must(os.Rename(filepath.Dir(path), filepath.Dir(path)+"4")) },
		"touch -a": func(path string) {
			must(unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_OMIT}}, 0))
		},
		"nothing happened": func(path string) {},
		"replaced": func(path string) {
			must(os.WriteFile(path+"5", []byte("another"), 0o600))
			must(os.Rename(path+"5", path))
		},
	} {
		f := newAged(t)
		untilLater(t, f.Name(), f.identity.Load().changed)
		change(f.Name())
		for range 2 {
			if err := f.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		overwriteOpened(t, f)
		if err := f.Check(); status.CodeOf(err) != status.DataLoss {
			t.Errorf("%s, then a write: %v", name, err)
		}
	}
}

// overwriteOpened writes to an open file, which may have another name by now.
func overwriteOpened(t *testing.T, f *File) {
	t.Helper()
	file, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(f.file.Fd())), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
}

// TestChecksAllocateNothing: every step checks every file that it reads.
func TestChecksAllocateNothing(t *testing.T) {
	f := newAged(t)
	if n := testing.AllocsPerRun(100, func() { _ = f.Check() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
