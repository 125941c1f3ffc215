package files

import (
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
)

// found is what one search has learned from the opener. It is safe for concurrent use.
type found struct {
	mu    sync.Mutex
	dirs  map[string]listing
	blobs map[string]blob.Entry // by complete name; only entries with a version
}

// listing is the result of listing a directory.
type listing struct {
	entries []blob.Entry
	err     error
}

func (s *found) add(e blob.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Version != "" && !e.Dir {
		s.blobs[e.Name] = e
	}
}

// list returns the entries of a directory. The opener lists each directory once.
func (f finder) list(dir string) ([]blob.Entry, error) {
	f.found.mu.Lock()
	known, ok := f.found.dirs[dir]
	f.found.mu.Unlock()
	if ok {
		return known.entries, known.err
	}
	entries, err := f.Opener.List(f.ctx, dir)
	for _, e := range entries {
		e.Name = f.join(dir, e.Name)
		f.found.add(e)
	}
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	f.found.dirs[dir] = listing{entries, err}
	return entries, err
}

// entry returns what is known about a blob.
func (f finder) entry(name string) blob.Entry {
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	if e, ok := f.found.blobs[name]; ok {
		return e
	}
	return blob.Entry{Name: name}
}

func (f finder) join(dir, below string) string { return f.Opener.Join(dir, below) }

// dirOf returns the directory of a name.
func (f finder) dirOf(name string) string {
	dir, _ := f.Opener.Split(name)
	return dir
}

// parts returns the parts of a name below a directory, the last one first.
func (f finder) parts(dir, name string) (parts []string) {
	for name != dir {
		up, base := f.Opener.Split(name)
		parts = append(parts, base)
		if up == name {
			break
		}
		name = up
	}
	return parts
}
