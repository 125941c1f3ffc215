package arrowio

import (
	"bytes"
	"container/list"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/guard"
	"github.com/meshfeed/meshfeed/core/status"
)

// maxDecoded bounds one buffer when decompressed.
const maxDecoded = 2 << 30

// Decode implements table.Store.
func (s *store) Decode(ctx context.Context, batch int32, field int) (*table.Decoded, error) {
	return s.cache.get(ctx, cacheKey{batch, field}, func() (*table.Decoded, error) {
		return (*Dataset)(s).decode(batch, s.table.Fields[field], s.columns[field])
	})
}

// decode reads and decompresses the buffers of a field in one record batch.
func (d *Dataset) decode(batch int32, field *table.Field, column int) (*table.Decoded, error) {
	f := (*store)(d).of(batch)
	i := int(batch) - f.first
	b, err := f.meta.Batch(f.content, i)
	if err != nil {
		return nil, f.named(err)
	}
	u := unpacker{r: f.content, body: f.meta.Batches[i].Body(), batch: b}
	out, err := u.field(field, &f.meta.Columns[column])
	if err != nil {
		return nil, f.named(status.Errorf(status.DataLoss, "arrowio", "field %q: record batch %d: %w", field.Name, i, err).
			WithHint("the data are damaged; write them again").With("field", field.Name).With("record batch", i))
	}
	return out, nil
}

// unpacker reads the buffers of one record batch.
type unpacker struct {
	r     io.ReaderAt
	body  int64
	batch *arrowmeta.RecordBatch
}

func (u *unpacker) field(field *table.Field, col *arrowmeta.Column) (*table.Decoded, error) {
	out := &table.Decoded{Nodes: make([]table.DecodedNode, len(field.Nodes))}
	for n := range field.Nodes {
		node, to := u.batch.Node(col), &out.Nodes[n]
		to.Length = node.Length
		var err error
		if col.Validity && node.Nulls > 0 {
			if to.Valid, err = u.buffer(col, 0, node.Length); err != nil {
				return nil, err
			}
		}
		if field.Nodes[n].Kind != table.Fixed {
			if to.Data, err = u.buffer(col, dataBuffer(col), node.Length); err != nil {
				return nil, err
			}
		}
		out.Bytes += int64(len(to.Valid) + len(to.Data))
		if n+1 < len(field.Nodes) {
			col = &col.Children[0]
		}
	}
	return out, nil
}

// buffer gives a buffer's bytes as they are when decompressed: as many as the
// column's length needs, at least.
func (u *unpacker) buffer(col *arrowmeta.Column, i int, length int64) ([]byte, error) {
	place := u.batch.Buffers(col)[i]
	need, ok := col.MinBytes(i, length)
	if !ok || need > maxDecoded {
		return nil, fmt.Errorf("a buffer for %d values", length)
	}
	stored := make([]byte, place.Length)
	if _, err := u.r.ReadAt(stored, u.body+place.Offset); err != nil {
		return nil, err
	}
	if u.batch.Compression == arrowmeta.Uncompressed {
		return enough(stored, need)
	}
	if len(stored) == 0 {
		return enough(nil, need)
	}
	size := int64(binary.LittleEndian.Uint64(stored)) // arrowmeta made sure of 8 bytes
	stored = stored[8:]
	if size == -1 {
		return enough(stored, need)
	}
	// The writer may pad a buffer to 64 bytes or more, but not by another buffer.
	if size < need || size > need+need/8+4096 {
		return nil, fmt.Errorf("a buffer of %d bytes for %d values, which need %d", size, length, need)
	}
	return decompress(u.batch.Compression, stored, size)
}

func enough(b []byte, need int64) ([]byte, error) {
	if int64(len(b)) < need {
		return nil, fmt.Errorf("a buffer of %d bytes where %d are needed", len(b), need)
	}
	return b, nil
}

// decompress gives exactly size bytes. The output is bounded, whatever the
// frames claim.
func decompress(c arrowmeta.Compression, stored []byte, size int64) (out []byte, err error) {
	err = guard.Call("arrowio", func() error {
		if c == arrowmeta.LZ4Frame {
			out, err = unlz4(stored, size)
		} else {
			out, err = unzstd(stored, size)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	return out, nil
}

func unlz4(stored []byte, size int64) ([]byte, error) {
	r := lz4.NewReader(bytes.NewReader(stored))
	return readExactly(r, size)
}

// maxWindow bounds what a zstd frame may ask its reader to keep.
const maxWindow = 64 << 20

// zstdRatio is more than zstd can compress: 128 KiB become 4 bytes.
const zstdRatio = 40 << 10

func unzstd(stored []byte, size int64) ([]byte, error) {
	var head zstd.Header
	if err := head.Decode(stored); err != nil {
		return nil, err
	}
	if !head.SingleSegment {
		r, err := zstd.NewReader(bytes.NewReader(stored), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return readExactly(r, size)
	}
	if head.FrameContentSize != uint64(size) || size/zstdRatio > int64(len(stored)) {
		return nil, fmt.Errorf("%d bytes of a frame of %d where %d are announced", len(stored), head.FrameContentSize, size)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(size, maxWindow))), zstd.WithDecoderMaxWindow(uint64(max(size, maxWindow))))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := r.DecodeAll(stored, make([]byte, 0, size))
	if err == nil && int64(len(out)) != size {
		err = fmt.Errorf("%d bytes instead of %d", len(out), size)
	}
	return out, err
}

// readExactly reads size bytes and makes sure that no more follow. It grows
// with what is really there.
func readExactly(r io.Reader, size int64) ([]byte, error) {
	out := make([]byte, 0, min(size, 1<<20))
	for int64(len(out)) < size {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), min(size, 4*int64(cap(out))))
			copy(grown, out)
			out = grown
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(len(out)) < size {
		return nil, fmt.Errorf("%d bytes instead of %d", len(out), size)
	}
	var more [1]byte
	if n, err := io.ReadFull(r, more[:]); n > 0 || err != io.EOF {
		return nil, fmt.Errorf("more than the %d bytes that were announced", size)
	}
	return out, nil
}

// cacheBytes bounds the decoded buffers that are kept.
const cacheBytes = 256 << 20

type cacheKey struct {
	batch int32
	field int
}

// decodeCache keeps the buffers that were decoded last, and lets no two
// gathers decode the same ones.
type decodeCache struct {
	mu    sync.Mutex
	byKey map[cacheKey]*list.Element
	order *list.List // of *cacheEntry, the last used in front
	bytes int64
}

type cacheEntry struct {
	key   cacheKey
	ready chan struct{}
	done  bool // guarded by the cache's lock: value may be read
	value *table.Decoded
	err   error
}

// get gives what make made, now or earlier. A failure is not kept.
func (c *decodeCache) get(ctx context.Context, key cacheKey, make func() (*table.Decoded, error)) (*table.Decoded, error) {
	entry, mine := c.entry(key)
	if mine {
		entry.err = guard.Call("arrowio", func() (err error) {
			entry.value, err = make()
			return err
		})
		c.finish(entry)
		return entry.value, entry.err
	}
	select {
	case <-entry.ready:
		return entry.value, entry.err
	case <-ctx.Done():
		return nil, status.Errorf(status.CodeOf(ctx.Err()), "arrowio", "the gather was ended: %w", ctx.Err())
	}
}

func (c *decodeCache) entry(key cacheKey) (entry *cacheEntry, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey, c.order = map[cacheKey]*list.Element{}, list.New()
	}
	if e := c.byKey[key]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*cacheEntry), false
	}
	entry = &cacheEntry{key: key, ready: make(chan struct{})}
	c.byKey[key] = c.order.PushFront(entry)
	return entry, true
}

// finish counts the entry's bytes and drops the oldest ones.
func (c *decodeCache) finish(entry *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(entry.ready)
	entry.done = true
	if entry.err != nil {
		c.drop(c.byKey[entry.key])
		return
	}
	c.bytes += entry.value.Bytes
	for e := c.order.Back(); e != nil && c.bytes > cacheBytes; {
		previous := e.Prev()
		if old := e.Value.(*cacheEntry); old.done && old != entry {
			c.drop(e)
		}
		e = previous
	}
}

func (c *decodeCache) drop(e *list.Element) {
	entry := e.Value.(*cacheEntry)
	c.order.Remove(e)
	delete(c.byKey, entry.key)
	if entry.value != nil {
		c.bytes -= entry.value.Bytes
	}
}
