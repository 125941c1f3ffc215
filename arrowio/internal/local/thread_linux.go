package local

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns for how long this thread has run on a processor. The goroutine must be locked
// to it.
func ThreadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
