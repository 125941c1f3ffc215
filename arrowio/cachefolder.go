package arrowio

import (
	"strings"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/part"
)

// CacheFolder is a folder of decoded units, such as the folder of the option Cache. Programs may
// use it at the same time.
type CacheFolder struct{ folder *diskcache.Folder }

// CacheEntry is a file in a [CacheFolder].
type CacheEntry struct {
	Dataset string // the file, or the directory of the files, that it was made for; "" if it does not say
	Columns string // the names of its fields, separated by commas
	Key     string
	Bytes   int64
	Used    time.Time // the last time that a dataset began to use it
	Scratch bool      // it is being written, or its writer was killed
	InUse   bool      // some process uses or writes it, so that it is not removed
}

// OpenCache opens a folder of decoded units, "" for the folder of the user. The error is NotFound
// if the folder does not exist.
func OpenCache(path string) (*CacheFolder, error) {
	if path == "" {
		var err error
		if path, err = diskcache.Default(""); err != nil {
			return nil, err
		}
	}
	folder, err := diskcache.Look(path)
	if err != nil {
		return nil, err
	}
	return &CacheFolder{folder}, nil
}

// Path returns the folder.
func (c *CacheFolder) Path() string { return c.folder.Path() }

// Entries lists the files. Files that were used longest ago come first.
func (c *CacheFolder) Entries() ([]CacheEntry, error) {
	found, err := c.folder.List()
	list := make([]CacheEntry, len(found))
	for i, e := range found {
		list[i] = CacheEntry{Key: e.Key, Bytes: e.Bytes, Used: e.Used, Scratch: e.Scratch, InUse: e.InUse}
		if !e.Scratch {
			list[i].Dataset, list[i].Columns = c.about(e)
		}
	}
	return list, err
}

// about returns what an entry says of its dataset and fields: nothing if it is damaged.
func (c *CacheFolder) about(e diskcache.Info) (dataset, columns string) {
	_ = c.folder.Peek(e, func(file diskcache.Entry) error { // an entry that is gone has no text either
		text, err := part.About(file, e.Bytes, e.Key)
		dataset, columns, _ = strings.Cut(text, "\n")
		return err
	})
	return dataset, columns
}

// Clear removes the files that no process uses. It returns their number and bytes, and how
// many are left because a process uses them. The error is IO if others cannot be removed.
func (c *CacheFolder) Clear() (removed int, bytes int64, used int, err error) {
	return c.folder.Clear()
}
