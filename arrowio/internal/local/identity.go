package local

import (
	"fmt"
	"os"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// identity is the metadata of an open file. If it differs, Check reports that the
// content has changed.
type identity struct {
	size     int64
	modified int64 // time of the last write; all times are in nanoseconds since 1970
	changed  int64 // time of the last status change (ctime); 0 if the system has none

	attributes [3]uint64 // links, mode, owner: if one of them changes, so does ctime
	accessed   int64     // time of the last read

	device, inode uint64
}

// Check implements blob.Blob. It fails if the file was truncated, has grown or
// was written to.
func (f *File) Check() error {
	now, err := f.identityNow()
	if err != nil {
		return f.ioError(err)
	}
	was := f.identity.Load()
	switch {
	case now.size < was.size:
		return f.truncated()
	case now.size > was.size:
		return f.changed("it has %d bytes, and had %d", now.size, was.size)
	case f.sealed:
		return nil
	case now.modified != was.modified:
		return f.changed("its modification time is %s, and was %s", utc(now.modified), utc(was.modified))
	case now.changed == was.changed:
		return nil
	case !f.sameContent(now, *was):
		return f.changed("its status change time is %s, and was %s; its modification time was set back to %s", utc(now.changed), utc(was.changed), utc(now.modified))
	}
	kept := now // this copy escapes; now stays on the stack, because every step calls Check
	f.identity.CompareAndSwap(was, &kept)
	return nil
}

// sameContent reports whether something other than a write explains the new
// status change time. A change of owner or mode changes the attributes. touch -a
// sets the access time to the status change time. After a rename or a removal, the
// path names another file or none.
func (f *File) sameContent(now, was identity) bool {
	if now.attributes != was.attributes || now.accessed == now.changed {
		return true
	}
	there, err := os.Stat(f.path)
	if err != nil {
		return true
	}
	here, err := f.file.Stat()
	return err == nil && !os.SameFile(here, there)
}

func (f *File) truncated() error {
	return status.Errorf(status.DataLoss, "arrowio", "%s ends before the %d bytes that it had when it was opened", f.path, f.size).
		WithHint("do not write to a file while it is read: write another and rename it").With("path", f.path).With("truncated", true)
}

func (f *File) changed(format string, args ...any) error {
	return status.Errorf(status.DataLoss, "arrowio", "%s has changed since it was opened: %s", f.path, fmt.Sprintf(format, args...)).
		WithHint("do not write to a file while it is read: write another and rename it; open the dataset again to read what the file holds now").
		With("path", f.path)
}

// utc formats a time as precisely as the file system has it.
func utc(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}
