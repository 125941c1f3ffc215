package diskcache

import (
	"errors"
	"os"
	"syscall"

	"github.com/meshfeed/meshfeed/core/status"
)

// Scratch is an entry that is being written. One goroutine may use it.
type Scratch struct {
	folder   *Folder
	key      string
	file     *os.File
	end      int64 // bytes written
	reserved int64 // size of the file, which other processes count
}

// A writer reserves up to reserveBytes at a time, and no more than a small share of the limit.
const (
	reserveBytes = 16 << 20
	reserveShare = 256
)

var writeAt = (*os.File).WriteAt // tests replace it

// Create begins an entry. It returns nil if another process writes it, or has just written
// it. The caller must call Commit or Abort.
func (f *Folder) Create(key string) (*Scratch, error) {
	if f.unwritable != nil {
		return nil, f.unwritable
	}
	path := f.scratch(key)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, f.failed(err)
	}
	s := &Scratch{folder: f, key: key, file: file}
	locked, err := lock(file, true)
	if err != nil || !locked || !same(file, path) {
		_ = file.Close()
		return nil, f.failed(err)
	}
	if _, err := os.Stat(f.entry(key)); err == nil {
		s.Abort()
		return nil, nil
	}
	if err := file.Truncate(0); err != nil {
		s.Abort()
		return nil, f.failed(err)
	}
	return s, nil
}

// Write appends bytes. If the cache has no room for them, it removes entries. The error is
// ResourceExhausted if that does not make enough room.
func (s *Scratch) Write(p []byte) (int, error) {
	if need := s.end + int64(len(p)); need > s.reserved {
		if err := s.reserve(need); err != nil {
			return 0, err
		}
	}
	n, err := writeAt(s.file, p, s.end)
	if errors.Is(err, syscall.ENOSPC) { // others have filled the disk
		if yield := s.folder.shrinkBy(reserveBytes, s.key); yield == nil {
			n, err = writeAt(s.file, p, s.end)
		}
	}
	s.end += int64(n)
	return n, s.folder.failed(err)
}

// reserve makes the file at least need bytes long, after it has made room. If two processes
// reserve the last room at the same time, both may fail, and the limit holds.
func (s *Scratch) reserve(need int64) error {
	for _, size := range []int64{need + min(reserveBytes, s.folder.limit/reserveShare), need} {
		if err := s.file.Truncate(size); err != nil {
			return s.folder.failed(err)
		}
		fits, err := s.folder.shrink(s.folder.limit, s.key)
		if err != nil {
			return err
		}
		if fits {
			s.reserved = size
			return nil
		}
	}
	return status.Errorf(status.ResourceExhausted, "arrowio", "the cache in %s may have %d bytes, and what is in use leaves no room", s.folder.path, s.folder.limit).
		WithHint("give it more (cache_bytes), or clear it: meshfeed cache clear").With("path", s.folder.path)
}

// shrinkBy makes the files shorter by a number of bytes together, as shrink does.
func (f *Folder) shrinkBy(bytes int64, key string) error {
	list, err := f.files()
	if err == nil {
		_, err = f.shrink(total(list)-bytes, key)
	}
	return err
}

// shrink removes the entries that were used longest ago until a limit holds, but none
// that is in use. It reports whether the limit holds.
func (f *Folder) shrink(limit int64, key string) (fits bool, err error) {
	list, err := f.files()
	if err != nil {
		return false, err
	}
	bytes := total(list)
	if bytes > limit {
		if list, err = f.clean(key); err != nil {
			return false, err
		}
		bytes = total(list)
	}
	for i := range list {
		if bytes <= limit {
			break
		}
		if !list[i].Scratch && f.remove(&list[i]) == nil {
			bytes -= list[i].Bytes
		}
	}
	return bytes <= limit, nil
}

// Commit ends the entry, and returns it as Find does. Its bytes are on the disk before it
// gets its name, so that a loss of power leaves a whole entry or none.
func (s *Scratch) Commit() (Entry, error) {
	err := s.file.Truncate(s.end)
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = os.Rename(s.folder.scratch(s.key), s.folder.entry(s.key))
	}
	if err != nil {
		s.Abort()
		return nil, s.folder.failed(err)
	}
	_, _ = lock(s.file, false) // without it, the entry may be removed, and this file stays
	touch(s.folder.entry(s.key))
	return s.file, nil
}

// Abort removes the scratch file.
func (s *Scratch) Abort() {
	_ = os.Remove(s.folder.scratch(s.key))
	_ = s.file.Close()
}
