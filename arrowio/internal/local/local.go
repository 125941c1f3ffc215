// Package local reads the files of this machine's file systems: it implements
// the interfaces of package blob. Below arrowio, only it and package diskcache
// call package os or the kernel.
//
// On Linux 5.14 or later an open file is [blob.Mappable]. On other systems files
// are only read.
package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/meshfeed/meshfeed/arrowio/blob"
)

// Opener opens files by their paths.
type Opener struct{}

var _ blob.Opener = Opener{}

// Stat implements blob.Opener.
func (Opener) Stat(_ context.Context, path string) (blob.Info, error) {
	info, err := os.Stat(path)
	if err != nil {
		return blob.Info{}, openError(path, err)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	return blob.Info{Dir: info.IsDir(), Full: full}, nil
}

// List implements blob.Opener.
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

// Open implements blob.Opener.
func (Opener) Open(_ context.Context, path string) (blob.Blob, error) {
	f, err := open(path)
	if err != nil {
		return nil, openError(path, err)
	}
	return f, nil
}
