package local

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/meshfeed/meshfeed/core/status"
)

// Folder is a directory. Its files appear whole or not at all. Several processes may
// write to it.
type Folder struct{ Dir string }

// Path returns the path of a file in the directory.
func (f Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// Make makes the directory and its parents, if they do not exist.
func (f Folder) Make() error {
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return writeError(f.Dir, err)
	}
	return nil
}

// Names returns the names of all entries in order. The list is empty without the directory.
func (f Folder) Names() ([]string, error) {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, openError(f.Dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Has reports whether there is an entry of a name.
func (f Folder) Has(name string) bool {
	_, err := os.Lstat(f.Path(name))
	return err == nil
}

// Read returns the content of a file. The error is NotFound if the file does not exist.
func (f Folder) Read(name string) ([]byte, error) {
	path := f.Path(name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, openError(path, err)
	}
	return text, nil
}

// Create begins a file. Until [Scratch.Commit] it has a hidden name.
func (f Folder) Create(name string) (*Scratch, error) {
	scratch := filepath.Join(f.Dir, fmt.Sprintf(".%s.%016x", name, rand.Uint64()))
	file, err := os.OpenFile(scratch, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, writeError(f.Dir, err)
	}
	return &Scratch{folder: f, name: name, scratch: scratch, file: file}, nil
}

// Scratch is a file that is being written.
type Scratch struct {
	folder        Folder
	name, scratch string
	file          *os.File
}

// Write implements io.Writer.
func (s *Scratch) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if err != nil {
		err = writeError(s.folder.Dir, err)
	}
	return n, err
}

// Commit renames the file to its final name once its bytes are on the disk. If another process has
// done so before, Commit succeeds. Scratch files of this name, which processes that were killed
// have left, are removed.
func (s *Scratch) Commit() error {
	return s.commit(func(path string) error {
		err := os.Rename(s.scratch, path)
		if errors.Is(err, fs.ErrNotExist) && s.folder.Has(s.name) {
			return nil // another process was first, and removed this scratch file
		}
		return err
	})
}

// CommitFirst does what [Scratch.Commit] does, unless there is a file of the name. First is
// then false.
func (s *Scratch) CommitFirst() (first bool, err error) {
	first = true
	err = s.commit(func(path string) error {
		err := os.Link(s.scratch, path)
		switch {
		case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist) && s.folder.Has(s.name):
			first = false
			return nil
		case err != nil && !s.folder.Has(s.name): // a file system without links
			return os.Rename(s.scratch, path)
		}
		return err
	})
	return first && err == nil, err
}

func (s *Scratch) commit(named func(path string) error) error {
	defer os.Remove(s.scratch)
	err := s.file.Sync()
	if closed := s.file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = named(s.folder.Path(s.name))
	}
	if err != nil {
		return writeError(s.folder.Dir, err)
	}
	s.folder.clean(s.name)
	return s.folder.sync()
}

// Discard removes the file.
func (s *Scratch) Discard() {
	_ = s.file.Close()
	_ = os.Remove(s.scratch)
}

// clean removes the scratch files of a name.
func (f Folder) clean(name string) {
	entries, _ := os.ReadDir(f.Dir)
	for _, e := range entries {
		if IsScratch(e.Name(), name) {
			_ = os.Remove(filepath.Join(f.Dir, e.Name()))
		}
	}
}

// IsScratch reports whether an entry is a scratch file of a name.
func IsScratch(entry, name string) bool {
	random, ok := strings.CutPrefix(entry, "."+name+".")
	return ok && len(random) == 16 && strings.Trim(random, "0123456789abcdef") == ""
}

// sync makes the names of the files last. A system that cannot open a directory does so by
// itself.
func (f Folder) sync() error {
	dir, err := os.Open(f.Dir)
	if err != nil {
		return nil
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return writeError(f.Dir, err)
	}
	return nil
}

// absolute returns the absolute path of a directory or file, without links in the part that exists.
func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	for dir, rest := abs, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
	}
}

// Inside reports whether a path is a directory, or lies in it.
func Inside(path, dir string) bool {
	rel, err := filepath.Rel(absolute(dir), absolute(path))
	return err == nil && filepath.IsLocal(rel)
}

// Matches reports whether the last part of a glob matches a path in the same directory.
func Matches(glob, path string) bool {
	ok, _ := filepath.Match(filepath.Join(absolute(filepath.Dir(glob)), filepath.Base(glob)), absolute(path))
	return ok
}

// writeError is the error for a directory that a file cannot be written to. Its attribute
// "full" is true if the disk is full.
func writeError(dir string, err error) error {
	if _, known := errors.AsType[*status.Error](err); known {
		return err
	}
	e := status.Errorf(status.IO, "arrowio", "%s: cannot write there: %w", dir, Cause(err)).With("path", dir)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e = status.Errorf(status.ResourceExhausted, "arrowio", "%s: no space is left there: %w", dir, Cause(err)).With("path", dir)
		return e.WithHint("make room").With("full", true)
	case errors.Is(err, fs.ErrPermission):
		return e.WithHint("give this user the right to write there, or name another folder")
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return e.WithHint("a part of this path is a file: name a folder")
	}
	return e
}
