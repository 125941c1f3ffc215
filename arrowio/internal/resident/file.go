package resident

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/status"
)

// File is one file of a set, or a reader in its place.
type File struct {
	name    string
	size    int64
	reader  io.ReaderAt
	file    *os.File // nil for a reader
	mapping []byte   // nil unless mapped; all of the file
	whole   bool     // all of the mapping will be resident

	faulted *uint32 // not 0 once bytes of the mapping were not there; nil if nobody watches it
	unwatch func()

	identity atomic.Pointer[identity]  // as it was opened, of a file
	checked  atomic.Pointer[time.Time] // when Recheck last looked

	ready atomic.Int64 // bytes from the beginning that are resident
}

// Open opens a regular file for reading.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	f := &File{name: path, reader: file, file: file}
	was, err := f.identityNow()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	now := time.Now()
	f.size = was.size
	f.identity.Store(&was)
	f.checked.Store(&now)
	return f, nil
}

// OpenReader makes a file of a reader of size bytes, which may be slow and is
// never mapped.
func OpenReader(name string, r io.ReaderAt, size int64) *File {
	f, now := &File{name: name, size: size, reader: r}, time.Now()
	f.checked.Store(&now)
	return f
}

// Name gives the path the file was opened by.
func (f *File) Name() string { return f.name }

// Size gives the file's size when it was opened.
func (f *File) Size() int64 { return f.size }

// ReadAt reads from the file itself, not from the mapping.
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.reader.ReadAt(p, offset) }

// Base gives the address of the file's first byte once all of it is resident.
// It is valid until the last user leaves the closed set.
func (f *File) Base() (uintptr, bool) {
	return f.base(), f.mapping != nil && f.ready.Load() == f.size
}

func (f *File) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(f.mapping))) }

// watch lets a handler watch the mapping.
func (f *File) watch(h FaultHandler) {
	if h != nil && len(f.mapping) > 0 {
		f.faulted, f.unwatch = h.Watch(f.mapping)
	}
}

// Close closes a file that belongs to no set.
func (f *File) Close() error {
	if f.unwatch != nil {
		f.unwatch()
	}
	err := f.mapOut()
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	return err
}

func (f *File) ioError(cause error) error {
	var path *os.PathError
	if errors.As(cause, &path) {
		cause = path.Err
	}
	return status.Errorf(status.IO, "arrowio", "%s: %w", f.name, cause).With("path", f.name)
}

// read fills p from offset. A file that ends early has shrunk.
func (f *File) read(p []byte, offset int64) error {
	n, err := f.reader.ReadAt(p, offset)
	switch {
	case n == len(p):
		return f.Recheck()
	case err == nil, errors.Is(err, io.EOF):
		return f.shrank()
	default:
		return f.ioError(err)
	}
}

// pieceBytes is how much is populated at a time. Meanwhile the kernel holds the
// lock of the process's address space, so that every thread which maps memory
// waits, and behind it every thread which touches new memory: with pieces of 64
// MiB for half a second on a busy machine, with these for 15 ms. The disk sees
// no difference, since the kernel reads ahead in smaller pieces anyway.
const pieceBytes = 4 << 20

// populateAll makes the file resident from the beginning to the end, until ctx
// ends.
func (f *File) populateAll(ctx context.Context) error {
	for at := int64(0); at < f.size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(at+pieceBytes, f.size)
		if err := f.populate(at, end); err != nil {
			return err
		}
		f.ready.Store(end)
		at = end
	}
	return nil
}

// resident reports whether a span has been populated.
func (f *File) resident(s Span) bool {
	return f.mapping != nil && s.Offset+int64(s.Length) <= f.ready.Load()
}

// covers reports whether a span lies in the file.
func (f *File) covers(s Span) bool {
	return s.Offset >= 0 && s.Length >= 0 && s.Offset <= f.size-int64(s.Length)
}
