package resident

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore asks which pages of a mapping are in memory.
func mincore(mapping, vec []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapping[0])), uintptr(len(mapping)), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
