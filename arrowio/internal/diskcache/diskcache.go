// Package diskcache keeps files that can be made again in a folder, up to a number of
// bytes. All processes of a host share the folder.
//
// An entry is written to a scratch file, which then gets its name. So a reader finds a
// whole entry or none, also after a process was killed. A process holds a lock of the
// kernel (flock) on each scratch file that it writes and on each entry that it uses. The
// kernel ends the locks of a process that dies. Nothing waits for a lock: a scratch file
// that is locked is left to its writer, and an entry that is locked is not removed.
//
// The time of last access of an entry is the time of its last use. To make room, the
// entries that were used longest ago are removed first.
package diskcache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The suffixes of files in the folder. Other files are not touched, and do not count.
const (
	entrySuffix   = ".units"
	scratchSuffix = ".scratch"
)

// Folder is an open cache. It is safe for concurrent use, and needs no close.
type Folder struct {
	path  string
	limit int64

	// unwritable is why nothing can be written; nil if that is possible.
	unwritable error
}

// Default returns the folder in a cache directory, "" for the user's. The error is
// Unsupported if the user has none.
func Default(home string) (string, error) {
	dir, err := home, error(nil)
	if home == "" {
		dir, err = os.UserCacheDir()
	}
	if err != nil {
		return "", status.Errorf(status.Unsupported, "arrowio", "this user has no cache directory: %w", err)
	}
	return filepath.Join(dir, "meshfeed", "units"), nil
}

// shareOfDisk is the part of the free disk that a cache takes if the caller gives no limit.
const shareOfDisk = 4

// Open makes the folder unless it exists, and removes what processes that died have left.
// A limit of 0 stands for a quarter of what is free on the disk or used by the cache. A folder
// that has entries and cannot be written is opened for reading; see Unwritable. The error is
// Unsupported if the system or the file system has no locks.
func Open(path string, limit int64) (*Folder, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	f := &Folder{path: full, limit: limit}
	if err := os.MkdirAll(full, 0o700); err != nil {
		return nil, f.failed(err)
	}
	if err := f.try(); err != nil {
		return f.forReading(err)
	}
	list, err := f.clean("")
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		free, err := freeBytes(full)
		if err != nil {
			return nil, f.failed(err)
		}
		f.limit = (free + total(list)) / shareOfDisk
	}
	return f, nil
}

// forReading returns the folder if it only lacks the right to write, as on a file system that
// is mounted for reading, and has entries. Otherwise it returns the error.
func (f *Folder) forReading(unwritable error) (*Folder, error) {
	if !errors.Is(unwritable, fs.ErrPermission) && !errors.Is(unwritable, syscall.EROFS) {
		return nil, unwritable
	}
	list, err := f.files()
	if err != nil || !slices.ContainsFunc(list, func(i Info) bool { return !i.Scratch }) {
		return nil, unwritable
	}
	f.unwritable, f.limit = unwritable, total(list)
	return f, nil
}

// Unwritable returns why no entry can be made or removed, or nil.
func (f *Folder) Unwritable() error { return f.unwritable }

// Has reports whether the folder has an entry, which may be damaged.
func (f *Folder) Has(key string) bool {
	_, err := os.Stat(f.entry(key))
	return err == nil
}

// Look returns a folder that exists, to list or clear it. The error is NotFound if it does
// not exist.
func Look(path string) (*Folder, error) {
	f := &Folder{path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, status.Errorf(status.NotFound, "arrowio", "there is no cache in %s", path).With("path", path)
	case err != nil:
		return nil, f.failed(err)
	case !info.IsDir():
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s is not a folder", path).With("path", path)
	}
	return f, nil
}

// try makes sure that files can be written and locked.
func (f *Folder) try() error {
	file, err := os.CreateTemp(f.path, "try*"+scratchSuffix)
	if err != nil {
		return f.failed(err)
	}
	defer file.Close()
	_, err = lock(file, true)
	if gone := os.Remove(file.Name()); !errors.Is(gone, fs.ErrNotExist) { // another process may clean up
		err = errors.Join(err, gone)
	}
	return f.failed(err)
}

// Path returns the folder.
func (f *Folder) Path() string { return f.path }

// Limit returns the most bytes of the cache.
func (f *Folder) Limit() int64 { return f.limit }

func (f *Folder) entry(key string) string   { return filepath.Join(f.path, key+entrySuffix) }
func (f *Folder) scratch(key string) string { return filepath.Join(f.path, key+scratchSuffix) }

// failed returns the error of a call of the system.
func (f *Folder) failed(err error) error {
	if _, known := errors.AsType[*status.Error](err); err == nil || known {
		return err
	}
	e := status.Errorf(status.IO, "arrowio", "the cache in %s: %w", f.path, local.Cause(err)).With("path", f.path).
		WithHint("give a folder that this user may write, or keep decoded rows in memory (cache=\"memory\")")
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		e.Code = status.Unsupported
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Code = status.ResourceExhausted
		return e.WithHint("make room, or keep decoded rows in memory (cache=\"memory\")")
	}
	return e
}

// Entry is an open entry.
type Entry = *os.File

// Find returns the entry of a key, open for reading, and counts it as used. It returns nil
// if the folder has no such entry. The entry is not removed until the file is closed.
func (f *Folder) Find(key string) (Entry, error) {
	path := f.entry(key)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, f.failed(err)
	}
	locked, err := lock(file, false)
	if err == nil && locked && same(file, path) {
		touch(path)
		return file, nil
	}
	_ = file.Close()
	return nil, f.failed(err)
}

// Remove removes the entry of a key, which turned out to be damaged.
func (f *Folder) Remove(key string) error {
	if err := os.Remove(f.entry(key)); !errors.Is(err, fs.ErrNotExist) {
		return f.failed(err)
	}
	return nil
}

// same reports whether a path still names an open file.
func same(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}

// Info describes a file of the cache.
type Info struct {
	Key     string
	Bytes   int64
	Used    time.Time
	Scratch bool // it is not whole
	InUse   bool // some process uses or writes it
}

// List returns the files of the cache. Files that were used longest ago come first.
func (f *Folder) List() ([]Info, error) {
	list, err := f.files()
	for i := range list {
		list[i].InUse = errors.Is(f.tryAlone(&list[i], func(string) error { return nil }), errInUse)
	}
	return list, err
}

// Peek calls read with an open entry, which does not count as a use of it.
func (f *Folder) Peek(i Info, read func(Entry) error) error {
	path := f.entry(i.Key)
	file, err := os.Open(path)
	if err != nil {
		return f.failed(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f.failed(err)
	}
	defer func() { _ = os.Chtimes(path, i.Used, info.ModTime()) }() // a folder that cannot be written keeps its times
	return read(file)
}

// files lists the files of the cache without InUse.
func (f *Folder) files() ([]Info, error) {
	found, err := os.ReadDir(f.path)
	if err != nil {
		return nil, f.failed(err)
	}
	var list []Info
	for _, e := range found {
		key, whole := strings.CutSuffix(e.Name(), entrySuffix)
		if !whole {
			var scratch bool
			if key, scratch = strings.CutSuffix(e.Name(), scratchSuffix); !scratch {
				continue
			}
		}
		info, err := e.Info()
		if err != nil {
			continue // it was removed since
		}
		list = append(list, Info{Key: key, Bytes: info.Size(), Used: accessed(info), Scratch: !whole})
	}
	slices.SortFunc(list, func(a, b Info) int { return a.Used.Compare(b.Used) })
	return list, nil
}

func total(list []Info) (bytes int64) {
	for _, i := range list {
		bytes += i.Bytes
	}
	return bytes
}

// errInUse is why a file is left to a process that uses it.
var errInUse = errors.New("a process uses it")

// tryAlone calls do with the path of a file, unless some process uses it or it is gone.
func (f *Folder) tryAlone(i *Info, do func(path string) error) error {
	path := f.entry(i.Key)
	if i.Scratch {
		path = f.scratch(i.Key)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	locked, err := lock(file, true)
	switch {
	case err != nil:
		return err
	case !locked || !same(file, path):
		return errInUse
	}
	return do(path)
}

// remove removes a file unless some process uses it.
func (f *Folder) remove(i *Info) error {
	err := f.tryAlone(i, os.Remove)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clean removes the scratch files of dead processes, except the file of a key. It returns the
// files that are left.
func (f *Folder) clean(except string) ([]Info, error) {
	list, err := f.files()
	list = slices.DeleteFunc(list, func(i Info) bool {
		return i.Scratch && i.Key != except && f.remove(&i) == nil
	})
	return list, err
}

// Clear removes all files that no process uses. It returns their number and their bytes,
// and the number of files that a process uses. The error says how many others cannot be
// removed, and why the first of them cannot.
func (f *Folder) Clear() (removed int, bytes int64, used int, err error) {
	list, err := f.files()
	failed, reason := 0, error(nil)
	for i := range list {
		switch err := f.remove(&list[i]); {
		case err == nil:
			removed++
			bytes += list[i].Bytes
		case errors.Is(err, errInUse):
			used++
		default:
			if failed++; reason == nil {
				reason = err
			}
		}
	}
	if failed > 0 {
		return removed, bytes, used, status.Errorf(status.IO, "arrowio", "%s of the cache in %s cannot be removed: %w", wording.Count(int64(failed), "file", "files"), f.path, local.Cause(reason)).
			WithHint("clear it as a user that may write the folder and owns the files").With("path", f.path)
	}
	return removed, bytes, used, err
}
