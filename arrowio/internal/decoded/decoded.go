// Package decoded decodes units of the files of a dataset, and keeps results in memory.
//
// A [Cache] answers one question: give me a field of a unit. The decodings in progress of a
// process take a bounded amount of memory together. A result stays in the cache until
// others need its room (memory.go). Units that were announced are decoded in the background
// (ahead.go).
package decoded

import (
	"context"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
)

// Cache decodes the units of files. It is safe for concurrent use, and implements table.Units.
type Cache struct {
	files *units.Files
	calls *source.Calls
	life  context.Context // ends when calls are closed

	memory memory
	ahead  ahead
	work   work
}

// New returns a cache of the units of files. Life ends when calls are closed.
func New(files *units.Files, calls *source.Calls, life context.Context) *Cache {
	return &Cache{files: files, calls: calls, life: life}
}

// Bytes bounds the decoded buffers that a cache keeps.
const Bytes = 256 << 20

// Encoded implements table.Units.
func (c *Cache) Encoded(file int32) bool { return c.files.List[file].Encoding != "" }

// Limit returns the most bytes that the cache keeps: none if no file is encoded.
func (c *Cache) Limit() int64 {
	if slices.ContainsFunc(c.files.List, func(f *units.File) bool { return f.Encoding != "" }) {
		return Bytes
	}
	return 0
}

// Fetch begins to read the stored bytes of fields of record batches that are not decoded yet.
func (c *Cache) Fetch(batches []int32, fields []int) {
	c.files.Fetch(units.Wanted{Batches: batches, Fields: fields, Decoded: c.has, Whole: true, Next: true})
}

// has reports whether a field of a record batch is decoded, or is being decoded.
func (c *Cache) has(batch int32, field int) bool {
	return c.memory.has(key{batch: batch, field: field})
}

// Work returns how long threads have decoded.
func (c *Cache) Work() source.Work {
	return source.Work{Running: time.Duration(c.work.running.Load()), Waiting: time.Duration(c.work.waiting.Load())}
}
