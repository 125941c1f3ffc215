package arrowio

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// content is what a dataset needs of a file's content.
type content interface {
	io.ReaderAt
	io.Closer
	Size() int64
	Base() (address uintptr, ok bool)
	Check() error
}

func openContent(path string, o Options) (content, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err != nil {
		return nil, err
	}
	m := &mapped{File: h, size: info.Size()}
	if m.size > 0 {
		m.data, err = syscall.Mmap(int(h.Fd()), 0, int(m.size), syscall.PROT_READ, syscall.MAP_SHARED)
	}
	return m, err
}

type mapped struct {
	*os.File
	data []byte
	size int64
}

func (m *mapped) Size() int64 { return m.size }
func (m *mapped) Base() (uintptr, bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.data))), true
}
func (m *mapped) Check() error { return nil }
func (m *mapped) Close() error {
	syscall.Munmap(m.data)
	return m.File.Close()
}
