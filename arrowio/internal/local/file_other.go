//go:build !linux

package local

import (
	"fmt"
	"path/filepath"
)

func (*File) unmap() error { return nil }

func (f *File) identityNow() (identity, error) {
	info, err := f.file.Stat()
	if err != nil {
		return identity{}, err
	}
	return identity{size: info.Size(), modified: info.ModTime().UnixNano()}, nil
}

// keyOf returns the text of File.Identity: the path without symbolic links, the
// size and the modification time. The path replaces the inode, which is not
// portable.
func (f *File) keyOf(i identity) string {
	path, err := filepath.EvalSymlinks(f.path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		path = f.path
	}
	return fmt.Sprintf("%s:%d:%d", path, i.size, i.modified)
}

// IsRemote is false: it is not known.
func IsRemote(string) bool { return false }

func (f *File) versionOf(i identity) string { return f.keyOf(i) }
