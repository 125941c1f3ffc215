package main

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// napper naps in a system call, on a futex. There the goroutine keeps its place
// in Go's scheduler, so that no thread but the one that sleeps is woken, and
// none by a caller unless he has to wait.
type napper struct{ woken atomic.Uint32 }

const (
	futexWait = 0 | futexPrivate
	futexWake = 1 | futexPrivate

	futexPrivate = 128
)

// Nap implements loader.Napper. Linux adds 50 µs at most.
func (n *napper) Nap(d time.Duration) {
	limit := unix.NsecToTimespec(int64(d))
	n.futex(futexWait, 0, unsafe.Pointer(&limit))
	n.woken.Store(0)
}

// Wake implements loader.Napper.
func (n *napper) Wake() {
	n.woken.Store(1)
	n.futex(futexWake, 1, nil)
}

// futex waits while woken has a value, or wakes as many as that.
func (n *napper) futex(op, value uintptr, limit unsafe.Pointer) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&n.woken)), op, value, uintptr(limit), 0, 0)
}
