// Package local reads the files of this machine's file systems: it implements
// the interfaces of package blob. Below arrowio, only it and package diskcache
// call the system or use paths.
//
// On Linux 5.14 or later an open file is [blob.Mappable]. On other systems files
// are only read.
package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
)

// Opener opens files by their paths.
type Opener struct{}

var _ blob.Opener = Opener{}

// Join implements blob.Names.
func (Opener) Join(dir, below string) string { return filepath.Join(dir, filepath.FromSlash(below)) }

// Split implements blob.Names.
func (Opener) Split(path string) (dir, base string) { return filepath.Dir(path), filepath.Base(path) }

// Full implements blob.Names. It returns the absolute path.
func (Opener) Full(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// Hints implements blob.Opener.
func (Opener) Hints() blob.Hints { return blob.Disk }

// Stat implements blob.Opener.
func (Opener) Stat(_ context.Context, path string) (blob.Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return blob.Entry{}, openError(path, err)
	}
	if info.IsDir() {
		return blob.Entry{Name: path, Dir: true}, nil
	}
	return blob.Entry{Name: path, Version: listed(info.Size(), info.ModTime().UnixNano()), Size: info.Size()}, nil
}

// listed returns the version of a file in an entry: its size and the time of its last write. It is not as
// sharp as File.Version, because a new name or owner of a file is no change.
func listed(size, modified int64) string {
	return strconv.FormatInt(size, 36) + ":" + strconv.FormatInt(modified, 36)
}

// List implements blob.Opener. It does not ask for sizes, because that is a call of the system for
// each file.
func (Opener) List(_ context.Context, dir string) ([]blob.Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, openError(dir, err)
	}
	list := make([]blob.Entry, len(found))
	for i, e := range found {
		list[i] = blob.Entry{Name: e.Name(), Dir: e.IsDir()}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Stat(filepath.Join(dir, e.Name()))
			list[i].Dir = err == nil && target.IsDir()
		}
	}
	return list, nil
}

// Glob implements blob.Opener. A directory that cannot be listed matches nothing, as in
// filepath.Glob.
func (o Opener) Glob(ctx context.Context, pattern string) (all []blob.Entry, err error) {
	dir, last := filepath.Split(pattern)
	dir = filepath.Clean(dir)
	parents := []blob.Entry{{Name: dir, Dir: true}}
	if strings.ContainsAny(dir, `*?[`) {
		if parents, err = o.Glob(ctx, dir); err != nil {
			return nil, err
		}
	}
	for _, p := range parents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !p.Dir {
			continue
		}
		entries, _ := o.List(ctx, p.Name)
		for _, e := range entries {
			if ok, _ := filepath.Match(last, e.Name); ok {
				all = append(all, blob.Entry{Name: filepath.Join(p.Name, e.Name), Dir: e.Dir})
			}
		}
	}
	return all, nil
}

// Open implements blob.Opener.
func (Opener) Open(_ context.Context, e blob.Entry) (blob.Blob, error) {
	f, err := open(e.Name)
	if err != nil {
		return nil, openError(e.Name, err)
	}
	if now := f.identity.Load(); e.Version != "" && listed(now.size, now.modified) != e.Version {
		_ = f.Close()
		return nil, f.changed("its size or its modification time is another one")
	}
	return f, nil
}

// Text returns the text of a small file below a directory, without spaces around it, or "".
func Text(dir string, names ...string) string {
	text, err := os.ReadFile(filepath.Join(append([]string{dir}, names...)...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Getenv returns a variable of the environment, or "".
func Getenv(name string) string { return os.Getenv(name) }

// Adopt sets variables in the environment of the Go runtime to what getenv returns. A library of another program
// has a copy of the variables from before that program began to change them.
func Adopt(getenv func(string) string, names ...string) {
	for _, name := range names {
		switch value := getenv(name); {
		case value == os.Getenv(name):
		case value == "":
			_ = os.Unsetenv(name)
		default:
			_ = os.Setenv(name, value)
		}
	}
}
