// Package parts keeps decoded fields of a dataset in a folder on disk.
//
// A [Cache] decides which fields are kept there. A set of fields that are gathered together is
// divided into parts: files that hold the decoded fields of consecutive record batches. A part is
// written when a gather first needs one of its rows, unless another process has written it. Its
// rows are then gathered from the file, in the same way as rows of Arrow files without
// compression. While a part cannot be written, its record batches are decoded in memory.
//
// What is made of a whole file when it is opened is kept in the folder too ([Made]).
//
// Package part is the format of a part's file, and package diskcache the folder.
package parts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/decoded"
	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Options select where decoded fields are kept.
type Options struct {
	Path  string // "" or "auto" for the user's cache, "memory" for no folder, else a folder
	Home  string // "" for the user's cache directory
	Limit int64  // 0 for the default
	Over  int64  // "auto" keeps fields on disk if they take more bytes
	Whole bool   // keep all fields in the same parts, and write parts for every read, because decoding costs much

	Opener       blob.Opener // names the dataset in a listing of the folder
	IO           string      // how the files of parts are read: see resident.Options
	FaultHandler resident.FaultHandler
}

func (o *Options) auto() bool { return o.Path == "" || o.Path == "auto" }

// chosen reports whether the caller has chosen the folder.
func (o *Options) chosen() bool { return !o.auto() && o.Path != "memory" }

// Cache keeps fields of a table over files.
type Cache struct {
	Options
	files    *units.Files
	decoded  *decoded.Cache
	inMemory *table.Table    // over the files; what is encoded is decoded in memory
	life     context.Context // ends when the dataset is closed

	mu      sync.Mutex
	folder  *diskcache.Folder
	problem error // why "auto" keeps fields in memory only
	sets    map[string]*set
}

// New returns a cache of the decoded fields of a table over files. Life ends when the calls of
// the table are closed.
func New(files *units.Files, decoded *decoded.Cache, over *table.Table, life context.Context, o Options) *Cache {
	return &Cache{Options: o, files: files, decoded: decoded, inMemory: over, life: life, sets: map[string]*set{}}
}

// Open opens the folder if the caller has chosen one and the files can use it.
func (c *Cache) Open() error {
	if !c.chosen() || !c.possible() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open()
}

// open opens the folder unless it is open. The caller holds the lock.
func (c *Cache) open() (err error) {
	if c.folder == nil {
		c.folder, err = c.Options.folder()
	}
	return err
}

// folder opens the folder.
func (o Options) folder() (folder *diskcache.Folder, err error) {
	path := o.Path
	if o.auto() {
		if path, err = diskcache.Default(o.Home); err != nil {
			return nil, err
		}
	}
	if folder, err = diskcache.Open(path, o.Limit); err != nil {
		return nil, err
	}
	if o.auto() && local.IsRemote(path) {
		return nil, status.Errorf(status.Unsupported, "arrowio", "the cache in %s would lie on a network file system", path).
			WithHint("give a folder on a local disk (cache)").With("path", path)
	}
	return folder, nil
}

// Close closes the files of all parts. No call may run.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sets {
		s.stored.Close()
	}
}

// Info returns where decoded fields are kept.
func (c *Cache) Info() source.CacheInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := source.CacheInfo{Problem: c.problem}
	if c.folder != nil && c.problem == nil {
		info.Folder, info.Limit = c.folder.Path(), c.folder.Limit()
	}
	return info
}

// disable notes a problem with the folder, so that no further part is written.
func (c *Cache) disable(problem error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = problem
}

// disabled reports whether the folder had a problem.
func (c *Cache) disabled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem != nil
}

// Gatherer returns a gatherer of parts of the table's rows, which are kept on disk if they
// should be.
func (c *Cache) Gatherer(parts []source.Part) (source.Gatherer, error) {
	inMemory, err := c.inMemory.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	fields := make([]int, len(parts))
	for i, p := range parts {
		fields[i] = p.Field
	}
	s, err := c.setOf(fields)
	if s == nil || err != nil {
		return inMemory, err
	}
	onDisk, err := s.onDisk.Gatherer(parts)
	return &gatherer{s, onDisk, inMemory}, err
}

// Reader returns a reader of fields of the table, as Gatherer does.
func (c *Cache) Reader(fields []int) (source.Reader, error) {
	inMemory, err := c.inMemory.Reader(fields)
	if err != nil {
		return nil, err
	}
	s, err := c.setOf(fields)
	if s == nil || err != nil {
		return inMemory, err
	}
	onDisk, err := s.onDisk.Reader(fields)
	r := &reader{set: s, onDisk: onDisk, inMemory: inMemory}
	r.announced.Store(c.Whole)
	return r, err
}

// setOf returns the set for some fields, or nil if they are kept in memory only: because
// the caller wants that, because all of them fit, or because of a problem.
func (c *Cache) setOf(fields []int) (*set, error) {
	fields = slices.Clone(fields)
	if c.Whole {
		fields = append(fields, c.numbers()...)
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if c.Path == "memory" || len(fields) == 0 || c.inMemory.Index.Len() == 0 || !c.possible() {
		return nil, nil
	}
	if c.auto() && !c.exceeds(fields, c.Over) {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fmt.Sprint(fields)
	if c.problem != nil || c.sets[name] != nil {
		return c.sets[name], nil
	}
	s, err := c.newSet(fields)
	if err != nil && c.auto() {
		c.problem = err
		return nil, nil
	}
	if err == nil {
		c.sets[name] = s
	}
	return s, err
}

// numbers returns the numbers of all fields.
func (c *Cache) numbers() []int {
	list := make([]int, len(c.files.Fields))
	for i := range list {
		list[i] = i
	}
	return list
}

// possible reports whether all files are encoded, and have versions.
func (c *Cache) possible() bool {
	return !slices.ContainsFunc(c.files.List, func(f *units.File) bool {
		_, versioned := f.Content.Blob.(blob.Versioned)
		return f.Encoding == "" || !versioned
	})
}

// exceeds reports whether some fields take about more than a number of bytes decoded. The metadata
// of each unit say how large its ragged fields are, so it reads them until there are more. It
// leaves errors to the gather that needs the record batch.
func (c *Cache) exceeds(fields []int, bytes int64) bool {
	for _, f := range c.files.List {
		for batch := f.First; batch < f.End(); batch++ {
			for _, i := range fields {
				field := c.files.Fields[i]
				size := (c.inMemory.Index.Rows(batch)*field.RowBits() + 7) / 8
				if field.Ragged > 0 {
					if size, _ = f.Size(c.life, batch, field); size < 0 { // most often it has fewer bytes than its unit
						size = f.StoredBytes(batch - f.First)
					}
				}
				if bytes -= size; bytes < 0 {
					return true
				}
			}
		}
	}
	return false
}

// newSet opens the folder if necessary, and makes the set for some fields. The caller holds the
// lock.
func (c *Cache) newSet(fields []int) (*set, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	need, about := c.needed(fields)
	if c.folder.Unwritable() != nil {
		return c.wholeSet(fields)
	}
	if need > c.folder.Limit() {
		return nil, status.Errorf(status.ResourceExhausted, "arrowio", "the decoded fields take %s%d bytes, but the cache in %s may have %d", about, need, c.folder.Path(), c.folder.Limit()).
			WithHint("give the cache more bytes (cache_bytes), or a folder on a larger disk; or set cache to memory, and the order to blocks").With("path", c.folder.Path())
	}
	return newSet(c, fields)
}

// needed returns how many bytes some fields take decoded, and the word about if their metadata do not say it exactly. The
// metadata of ragged fields are in memory for files far away only, and count only there.
func (c *Cache) needed(fields []int) (bytes int64, about string) {
	for _, i := range fields {
		field := c.files.Fields[i]
		if field.Ragged == 0 {
			bytes += c.inMemory.Index.Len() * field.RowBits() / 8
			continue
		}
		for batch := 0; c.files.Fetches() && batch < c.files.Batches(); batch++ {
			size, _ := c.files.File(int32(batch)).Size(c.life, batch, field)
			bytes, about = bytes+max(size, 0), "about "
		}
	}
	return bytes, about
}

// wholeSet makes the set for some fields in a folder that cannot be written. All parts must
// be in it.
func (c *Cache) wholeSet(fields []int) (*set, error) {
	s, err := newSet(c, fields)
	if err != nil {
		return nil, err
	}
	missing := 0
	for _, p := range s.parts {
		if !c.folder.Has(p.key) {
			missing++
		}
	}
	if e, ok := errors.AsType[*status.Error](c.folder.Unwritable()); ok && missing > 0 {
		return nil, status.Errorf(status.IO, "arrowio", "%s, and %d of %d files of the decoded fields are not in it", e.Msg, missing, len(s.parts)).
			WithHint("%s", e.Hint).With("path", c.folder.Path())
	}
	return s, nil
}

// maxColumns bounds the names of fields that a file of the cache lists.
const maxColumns = 200

// about returns what the parts of some fields say in a listing: the dataset, and the names of the
// fields.
func (c *Cache) about(fields []int) string {
	dataset := c.Opener.Full(c.files.List[0].Path)
	if len(c.files.List) > 1 {
		dataset, _ = c.Opener.Split(dataset)
	}
	names := make([]string, len(fields))
	for i, number := range fields {
		names[i] = wording.Plain(c.inMemory.Fields[number].Name)
	}
	return wording.Plain(dataset) + "\n" + wording.Cut(strings.Join(names, ", "), maxColumns)
}
