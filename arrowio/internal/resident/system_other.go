//go:build !linux

package resident

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Without a way to ask for resident pages nothing is mapped: all these systems
// read.

func root() fs.FS { return os.DirFS("/") }

func canPopulate() bool { return false }

func (*File) mapIn(bool) error { return nil }

func (*File) mapOut() error { return nil }

func (*File) populate(from, to int64) error { return nil }

func (*File) willNeed(from, to int64) {}

func (*File) remote() bool { return true }

func (f *File) identityNow() (identity, error) {
	info, err := f.file.Stat()
	if err != nil {
		return identity{}, err
	}
	return identity{size: info.Size(), modified: info.ModTime().UnixNano()}, nil
}

// keyNow gives the path without links.
func (f *File) keyNow() Key {
	path, err := filepath.EvalSymlinks(f.name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		path = f.name
	}
	return Key{path: path}
}
