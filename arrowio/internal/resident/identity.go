package resident

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// recheckAfter is how long a file that is read goes without a look at its
// identity. A mapped file is looked at in every step.
const recheckAfter = time.Second

// identity is what the file system says about an open file. It differs when the
// content may differ.
type identity struct {
	size     int64
	modified int64 // nanoseconds since 1970, as all times here
	changed  int64 // of the content or the attributes; 0 where the system does not say

	attributes [3]uint64 // links, mode, owner: a change of them changes the time, too
	accessed   int64
}

// Key is equal for two open files if they are the same one, whatever names they
// were opened by.
type Key struct {
	device, inode  uint64
	path           string // where there are no inodes
	size, modified int64  // for file systems that give an inode to several files
}

// Key tells the file from all others that are open.
func (f *File) Key() Key {
	if f.file == nil {
		return Key{path: f.name}
	}
	key := f.keyNow()
	was := f.identity.Load()
	key.size, key.modified = was.size, was.modified
	return key
}

// Check fails with DataLoss if the file is not the one that was opened: it was
// cut, has grown or was written to, or bytes of its mapping were not there when
// they were touched, so that zeros may have been gathered.
func (f *File) Check() error {
	if f.file == nil {
		return nil
	}
	now, err := f.identityNow()
	if err != nil {
		return f.ioError(err)
	}
	cut := now.size < f.identity.Load().size
	if !cut && f.faulted != nil && atomic.LoadUint32(f.faulted) != 0 {
		return status.Errorf(status.DataLoss, "arrowio", "%s could not be read from its mapping", f.name).
			WithHint("the disk failed, or the file was cut and grew again: open it again").With("path", f.name)
	}
	return f.compare(now)
}

// Recheck calls Check, unless a call less than recheckAfter ago did.
func (f *File) Recheck() error {
	now, last := time.Now(), f.checked.Load()
	if now.Sub(*last) < recheckAfter {
		return nil
	}
	if kept := now; !f.checked.CompareAndSwap(last, &kept) {
		return nil
	}
	return f.Check()
}

// compare compares the file's identity with the one it had when it was opened.
func (f *File) compare(now identity) error {
	was := f.identity.Load()
	switch {
	case now.size < was.size:
		return f.shrank()
	case now.size > was.size:
		return f.otherwise("it has %d bytes, and had %d", now.size, was.size)
	case now.modified != was.modified:
		return f.otherwise("its modification time is %s, and was %s", clock(now.modified), clock(was.modified))
	case now.changed == was.changed:
		return nil
	case !f.harmless(now, *was):
		return f.otherwise("its status change time is %s, and was %s; its modification time was set back to %s", clock(now.changed), clock(was.changed), clock(now.modified))
	}
	kept := now // so that now itself stays on the stack: every step compares
	f.identity.CompareAndSwap(was, &kept)
	return nil
}

// harmless says whether something other than a write explains the new time of
// change: other attributes, a new access time, or another file or none where
// the path leads now.
func (f *File) harmless(now, was identity) bool {
	if now.attributes != was.attributes || now.accessed == now.changed {
		return true
	}
	there, err := os.Stat(f.name)
	if err != nil {
		return true
	}
	here, err := f.file.Stat()
	return err == nil && !os.SameFile(here, there)
}

func (f *File) shrank() error {
	e := status.Errorf(status.DataLoss, "arrowio", "%s ends before the %d bytes that it had when it was opened", f.name, f.size)
	if f.file != nil {
		e.WithHint("do not write to a file while it is read: write another and rename it")
	}
	return e.With("path", f.name)
}

// otherwise is the error for a file whose content may be another.
func (f *File) otherwise(format string, args ...any) error {
	return status.Errorf(status.DataLoss, "arrowio", "%s has changed since it was opened: %s", f.name, fmt.Sprintf(format, args...)).
		WithHint("do not write to a file while it is read: write another and rename it; open the dataset again to read what the file holds now").
		With("path", f.name)
}

// clock gives a time in UTC, as precise as the file system has it.
func clock(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}
