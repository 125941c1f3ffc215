package arrowio

import (
	"context"
	"fmt"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// storedColumn is what is read of a chunk to decode a unit: all of it, or some pages.
type storedColumn struct {
	pages  *chunk.Pages // nil for all of the chunk
	head   []byte       // of some pages: what is before the first page of the chunk, if they need it
	data   []byte
	buffer []byte // for later reads
}

// read reads a leaf of a unit.
func (c *parquetFile) read(ctx context.Context, u *parquetUnit, leaf int) (s storedColumn, err error) {
	k := &c.meta.Groups[u.group].Chunks[leaf]
	start, stop := k.Offset, k.Offset+k.Length
	if !c.whole(u) {
		if s.pages, err = c.pages(ctx, u, leaf); err != nil {
			return s, err
		}
		if start, stop = s.pages.Range(); start == k.Data {
			start = k.Offset // the dictionary too
		}
	}
	if stop-start > maxUnpacked {
		return s, parquet.TooLarge(fmt.Sprintf("%d bytes, but at most %d are read at once", stop-start, maxUnpacked))
	}
	data := storedBuffer(stop - start)
	if err = c.content.ReadFull(ctx, data, start); err != nil {
		return s, err // a read may still write to data
	}
	s.data, s.buffer = data, data
	switch {
	case s.pages == nil:
	case start == k.Offset:
		s.head, s.data = data[:k.Data-start], data[k.Data-start:]
	case k.Data > k.Offset && chunk.NeedsDictionary(data):
		s.head, err = c.readBytes(ctx, k.Offset, k.Data-k.Offset)
	}
	return s, err
}

// readBytes reads n bytes that the footer promises.
func (c *parquetFile) readBytes(ctx context.Context, offset, n int64) ([]byte, error) {
	if n > maxUnpacked {
		return nil, parquet.TooLarge(fmt.Sprintf("%d bytes, but at most %d are read at once", n, maxUnpacked))
	}
	b := make([]byte, n)
	return b, c.content.ReadFull(ctx, b, offset)
}

// whole reports whether a unit is a row group.
func (c *parquetFile) whole(u *parquetUnit) bool {
	return u.start == 0 && u.stop == c.meta.Groups[u.group].Rows
}

// pages reads which pages of a leaf hold the rows of a unit. The offset indexes of large
// files take too much memory to be kept.
func (c *parquetFile) pages(ctx context.Context, u *parquetUnit, leaf int) (*chunk.Pages, error) {
	g := &c.meta.Groups[u.group]
	k := &g.Chunks[leaf]
	b, err := c.readBytes(ctx, k.Index, int64(k.IndexBytes))
	if err != nil {
		return nil, err
	}
	index, err := parquet.ReadOffsetIndex(b, k, g.Rows)
	return &chunk.Pages{Index: index, Start: u.start, Stop: u.stop}, err
}

// decode decodes the leaf within a limit of memory.
func (s *storedColumn) decode(k *parquet.Chunk, leaf *parquet.Leaf, rows int64, shape bool, limit int64) (*chunk.Column, error) {
	switch {
	case s.pages != nil:
		return chunk.DecodePages(s.head, s.data, s.pages, k, leaf, shape, limit)
	case shape:
		return chunk.DecodeShape(s.data, k, leaf, rows, limit)
	}
	return chunk.Decode(s.data, k, leaf, rows, limit)
}

// storedBuffers keeps buffers for stored bytes, because clearing new memory takes about as
// long as reading a file from the page cache.
var storedBuffers sync.Pool // of *[]byte

// maxKept bounds the buffers that are kept.
const maxKept = 128 << 20

// storedBuffer returns a buffer of n bytes with any content.
func storedBuffer(n int64) []byte {
	if kept, ok := storedBuffers.Get().(*[]byte); ok && int64(cap(*kept)) >= n {
		return (*kept)[:n]
	}
	return make([]byte, n)
}

func keepBuffer(b []byte) {
	if cap(b) <= maxKept {
		storedBuffers.Put(&b)
	}
}
