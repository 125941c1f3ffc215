package diskcache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lock locks an open file for this process, alone or with others. It does not wait: it
// returns false if another process has a lock that excludes this one.
func lock(file *os.File, alone bool) (bool, error) {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOLCK):
			return false, errors.Join(err, errors.ErrUnsupported)
		default:
			return false, err
		}
	}
}

// touch sets the time of last access. It leaves the other times of the content alone, so
// that processes which have mapped the file do not take it for changed.
func touch(path string) {
	times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_OMIT}}
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, path, times, 0)
}

// accessed returns the time of last access.
func accessed(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Atim.Unix())
	}
	return info.ModTime()
}

// freeBytes returns the bytes of a disk that this user may still write.
func freeBytes(path string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(path, &stat)
	return int64(stat.Bavail) * stat.Bsize, err
}
