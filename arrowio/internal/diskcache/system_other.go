//go:build !linux

package diskcache

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// A shared folder needs the locks and the times of Linux. Open fails on other systems, and
// a dataset then keeps decoded units in memory.

func lock(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }

func touch(string) {}

func accessed(info fs.FileInfo) time.Time { return info.ModTime() }

func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
