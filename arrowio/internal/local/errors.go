package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/meshfeed/meshfeed/core/status"
)

// notRegular returns the error for a pipe, a socket, a device or a directory.
func notRegular(path string, mode fs.FileMode) error {
	return status.Errorf(status.Unsupported, "arrowio", "%s: this is %s, not a file", path, kindOf(mode)).
		WithHint("rows are read in any order: copy its content into a file first").With("path", path)
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// openError is the error for a path if the system call open, readdir or stat failed.
func openError(path string, err error) error {
	if _, known := errors.AsType[*status.Error](err); known {
		return err
	}
	e := status.Errorf(status.IO, "arrowio", "%s: %w", path, Cause(err)).With("path", path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(path, e)
	case errors.Is(err, fs.ErrPermission):
		return e.WithHint("give this user the right to read it, and to enter its directories")
	case errors.Is(err, syscall.ELOOP):
		return e.WithHint("a link on the way leads back to itself: correct it")
	case errors.Is(err, syscall.EMFILE):
		return e.WithHint("all files of a dataset stay open: raise the limit of open files (ulimit -n), or write fewer, larger files")
	}
	return e
}

// missing returns the error for a path that does not exist.
func missing(path string, e *status.Error) error {
	if strings.Contains(path, "://") {
		return status.Errorf(status.Unsupported, "arrowio", "%s: this is a URL, and only files are read", path).
			WithHint("copy the files to this machine, or mount what holds them, and give their paths").With("path", path)
	}
	e.Code = status.NotFound
	if target, err := os.Readlink(path); err == nil {
		e.Msg = fmt.Sprintf("%s: this is a link to %s, which does not exist", path, target)
		return e.WithHint("fetch or copy the file that the link leads to")
	}
	e.Msg, e.Hint = path+": there is no such file or directory", whereMissing(path)
	return e
}

// whereMissing returns a hint that names the first part of a path that does not
// exist.
func whereMissing(path string) string {
	if strings.HasPrefix(path, "~") {
		return "~ is not replaced here: write the whole path"
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	for {
		dir, name := filepath.Split(abs)
		dir = filepath.Clean(dir)
		if _, err := os.Stat(dir); err == nil || dir == abs {
			return fmt.Sprintf("%s has no %s", dir, name)
		}
		abs = dir
	}
}
