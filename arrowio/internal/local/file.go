package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/core/status"
)

// File is an open file.
type File struct {
	path     string
	size     int64
	key      string // returned by Identity
	file     *os.File
	sealed   bool
	mapping  []byte                   // nil unless mapped
	identity atomic.Pointer[identity] // at opening, or at a Check that accepted a change
}

// open opens a regular file. It refuses other kinds before it opens them,
// because the opening of a pipe may wait for its other end.
func open(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info.Mode())
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, file: file}
	return f, f.begin()
}

// Sealed returns an open file as a blob, and closes it with the blob, or if it fails. Nothing
// writes to the file, so Check looks at its size and not at its times.
func Sealed(path string, file *os.File) (*File, error) {
	f := &File{path: path, file: file, sealed: true}
	return f, f.begin()
}

// begin records the identity of the file, or closes it.
func (f *File) begin() error {
	if err := f.identify(); err != nil {
		_ = f.file.Close()
		return err
	}
	return nil
}

// identify records size and identity of the open file. It does not use the path,
// which may name another file by now.
func (f *File) identify() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(f.path, info.Mode())
	}
	was, err := f.identityNow()
	if err != nil {
		return err
	}
	f.size, f.key = was.size, f.keyOf(was)
	f.identity.Store(&was)
	return nil
}

// Name implements blob.Blob.
func (f *File) Name() string { return f.path }

// Size implements blob.Blob.
func (f *File) Size() int64 { return f.size }

// Identity implements blob.Blob.
func (f *File) Identity() string { return f.key }

// Version implements blob.Versioned.
func (f *File) Version() string { return f.versionOf(*f.identity.Load()) }

// ReadAt implements blob.Blob. It reads the file itself, not the mapping.
func (f *File) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.file.ReadAt(p, offset)
	return n, Cause(err)
}

// Close implements blob.Blob.
func (f *File) Close() error { return errors.Join(f.unmap(), f.file.Close()) }

// Cause returns the system's error without the path that os wraps around it.
func Cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

func (f *File) ioError(err error) error {
	return status.Errorf(status.IO, "arrowio", "%s: %w", f.path, Cause(err)).With("path", f.path)
}
