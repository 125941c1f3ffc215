package arrowio

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/status"
)

// file is an open file and its metadata.
type file struct {
	path string
	meta *arrowmeta.File
	os   *os.File
	data []byte
	base uintptr
}

// openFile opens a file and reads its schema and the places of its batches.
func openFile(path string, o Options) (*file, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, openError(path, err)
	}
	info, err := h.Stat()
	if err != nil {
		return nil, openError(path, err)
	}
	f := &file{path: path, os: h}
	if f.meta, err = arrowmeta.Read(h, info.Size()); err != nil {
		h.Close()
		return nil, f.named(err)
	}
	f.data, err = syscall.Mmap(int(h.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		h.Close()
		return nil, openError(path, err)
	}
	f.base = uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
	return f, nil
}

func (f *file) close() error {
	syscall.Munmap(f.data)
	return f.os.Close()
}

// openError is the error for a file that cannot be opened.
func openError(path string, err error) error {
	code := status.IO
	if errors.Is(err, fs.ErrNotExist) {
		code = status.NotFound
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return status.Errorf(code, "arrowio", "%s: %w", path, err).With("path", path)
}

// named adds the file's name to an error about its content.
func (f *file) named(err error) error {
	var e *status.Error
	if !errors.As(err, &e) {
		return openError(f.path, err)
	}
	named := *e
	named.Op, named.Msg, named.Err = "arrowio", f.path+": "+e.Msg, err
	return named.With("path", f.path)
}
