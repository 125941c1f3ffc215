// Package ipc reads files and streams of Arrow IPC as formats of a dataset. Their units are
// record batches. Rows of a file without compression are gathered as they are stored.
// Compressed buffers and dictionaries are decoded.
package ipc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/audit"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/codec"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// kind is one of the two formats of Arrow IPC.
type kind struct {
	name string
	is   func(head, last []byte, size int64) bool
	read func(r io.ReaderAt, size int64, digest io.Writer) (*arrowmeta.File, error)
}

var (
	// File is the format of files, which end with a footer.
	File format.Format = kind{"file", isFile, arrowmeta.ReadFile}

	// Stream is the format of streams: messages without a footer, which can
	// only be located by reading their headers in order.
	Stream format.Format = kind{"stream", isStream, arrowmeta.ReadStream}
)

func isFile(head, last []byte, _ int64) bool {
	return arrowmeta.IsFile(head) || arrowmeta.EndsFile(last)
}

func isStream(head, _ []byte, size int64) bool { return arrowmeta.IsStream(head, size) }

// Recognize implements format.Format.
func (f kind) Recognize(head, last []byte, size int64) bool { return f.is(head, last, size) }

// Open implements format.Format.
func (f kind) Open(ctx context.Context, content *resident.File) (format.Contents, error) {
	digest := sha256.New()
	meta, err := f.read(blob.Reader(ctx, content), content.Size(), digest)
	if err != nil {
		return nil, err
	}
	c := &file{content: content, meta: meta}
	c.facts = format.Metadata{
		Format: f.name, Schema: &meta.Schema, Digest: [32]byte(digest.Sum(nil)), Unchecked: audit.Uncheckable(meta.Columns),
		Units: extents(meta.Batches), Dictionaries: extents(meta.Dictionaries),
	}
	if content.Fetches() {
		c.kept = make([]atomic.Pointer[arrowmeta.RecordBatch], len(meta.Batches))
	}
	for i := range meta.Columns {
		c.facts.Located = append(c.facts.Located, meta.Columns[i].Located)
	}
	return c, nil
}

// file is the contents of an IPC file or stream. Its units are record batches.
type file struct {
	content *resident.File
	meta    *arrowmeta.File
	facts   format.Metadata

	kept []atomic.Pointer[arrowmeta.RecordBatch] // headers of a file far away, after the first scan; else nil
}

func extents(blocks []arrowmeta.Block) []resident.Extent {
	list := make([]resident.Extent, len(blocks))
	for i, b := range blocks {
		list[i] = resident.Extent{Offset: b.Body(), Length: b.BodyLen}
	}
	return list
}

// Metadata implements format.Contents.
func (c *file) Metadata() *format.Metadata { return &c.facts }

// Verify implements format.Contents.
func (c *file) Verify(ctx context.Context, fields []int, progress func(bytes int64)) error {
	if !c.meta.Stream {
		if err := format.CheckStart(ctx, c.content, arrowmeta.Magic); err != nil {
			return err
		}
	}
	f := audit.File{Meta: c.meta, Reader: c.reader(ctx), Gathered: fields, Unpack: unpacked}
	return f.Audit(ctx, progress)
}

// unpacked returns the content of a compressed buffer of any size that is decoded.
func unpacked(how arrowmeta.Compression, packed []byte) ([]byte, error) {
	return codec.Buffer(how, packed, func(size int64) error {
		if size < 0 || size > codec.MaxBuffer {
			return fmt.Errorf("a buffer of %d bytes", size)
		}
		return nil
	})
}

func (c *file) reader(ctx context.Context) io.ReaderAt { return blob.Reader(ctx, c.content) }

// headerBytes is about how many bytes of headers are read at a time.
const headerBytes = 16 << 20

// Scan implements format.Contents. It reads many headers at once, and none that is kept.
func (c *file) Scan(ctx context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	for first < last {
		if b := c.header(first); b != nil {
			if err := visit(first, &recordBatch{c, ctx, first, b}); err != nil {
				return err
			}
			first++
			continue
		}
		var headers []resident.Extent
		stop := first
		for bytes := int64(0); stop < last && (stop == first || bytes < headerBytes); stop++ {
			b := c.meta.Batches[stop]
			headers = append(headers, resident.Extent{Offset: b.Offset, Length: b.MetaLen})
			bytes += b.MetaLen
		}
		if err := c.scan(ctx, headers, first, stop, visit); err != nil {
			return err
		}
		first = stop
	}
	return nil
}

// scan visits record batches after it has read their headers.
func (c *file) scan(ctx context.Context, headers []resident.Extent, first, last int, visit func(i int, u format.Unit) error) error {
	if len(headers) > 1 {
		if release, err := c.content.Hold(ctx, headers...); err == nil { // otherwise the scan finds the error again
			defer release()
		}
	}
	u := recordBatch{file: c, ctx: ctx}
	return c.meta.Scan(c.reader(ctx), first, last, func(i int, header *arrowmeta.RecordBatch) error {
		u.number, u.header = i, header
		if c.kept != nil {
			c.kept[i].Store(header.Clone())
		}
		return visit(i, &u)
	})
}

// header returns the header of record batch i if it is kept, or nil.
func (c *file) header(i int) *arrowmeta.RecordBatch {
	if c.kept == nil {
		return nil
	}
	return c.kept[i].Load()
}

// batch returns the header of record batch i.
func (c *file) batch(ctx context.Context, i int) (*arrowmeta.RecordBatch, error) {
	if b := c.header(i); b != nil {
		return b, nil
	}
	return c.meta.Batch(c.reader(ctx), i)
}

// Decoding implements format.Contents. It takes exactly the stored bytes and the sizes that
// compressed buffers begin with.
func (c *file) Decoding(ctx context.Context, i, column int, field *arrowtype.Field) (format.Decoding, error) {
	b, err := c.batch(ctx, i)
	if err != nil {
		return format.Decoding{}, err
	}
	stored, decoded, err := c.sizes(ctx, i, b, column, field)
	run := func(ctx context.Context, lists bool) (*buffers.Decoded, error) {
		return c.decode(ctx, i, b, column, field, lists)
	}
	return format.Decoding{Memory: stored + decoded, Run: run}, err
}

// Size implements format.Contents. Far away it reads nothing: compressed buffers count as they are stored.
func (c *file) Size(ctx context.Context, i, column int, field *arrowtype.Field) (bytes int64, err error) {
	if c.header(i) != nil {
		for _, e := range c.Stored(i, column) {
			bytes += e.Length
		}
		return bytes, nil
	}
	b, err := c.batch(ctx, i)
	if err != nil {
		return 0, err
	}
	_, decoded, err := c.sizes(ctx, i, b, column, field)
	return decoded, err
}

// Stored implements format.Contents. Without a header, which says where the buffers of the column are, it returns
// all of the record batch.
func (c *file) Stored(i, column int) (list []resident.Extent) {
	header := c.header(i)
	if header == nil {
		b := c.meta.Batches[i]
		return []resident.Extent{{Offset: b.Offset, Length: b.MetaLen + b.BodyLen}}
	}
	for col := &c.meta.Columns[column]; col.Located; col = inner(col) {
		for _, at := range header.Buffers(col) {
			if at.Length > 0 {
				list = append(list, resident.Extent{Offset: c.facts.Units[i].Offset + at.Offset, Length: at.Length})
			}
		}
		if len(col.Children) == 0 {
			break
		}
	}
	return list
}

// sizes returns the bytes of a column's buffers in record batch i, as they are stored and
// decoded.
func (c *file) sizes(ctx context.Context, i int, b *arrowmeta.RecordBatch, column int, field *arrowtype.Field) (stored, decoded int64, err error) {
	col, head := &c.meta.Columns[column], make([]byte, 8)
	for range field.Levels {
		for _, at := range b.Buffers(col) {
			if stored += at.Length; at.Length == 0 {
				continue
			}
			if b.Compression == arrowmeta.Uncompressed {
				decoded += at.Length
				continue
			}
			if err := c.content.ReadFull(ctx, head, c.facts.Units[i].Offset+at.Offset); err != nil {
				return 0, 0, err
			}
			decoded += min(max(int64(binary.LittleEndian.Uint64(head)), 0), codec.MaxBuffer)
		}
		if len(col.Children) == 0 {
			break
		}
		col = inner(col)
	}
	return stored, decoded, nil
}

// decode decodes a column of record batch i.
func (c *file) decode(ctx context.Context, i int, b *arrowmeta.RecordBatch, column int, field *arrowtype.Field, lists bool) (*buffers.Decoded, error) {
	u := unpacker{r: c.reader(ctx), body: c.facts.Units[i].Offset, batch: b, lists: lists}
	out, err := u.field(field, &c.meta.Columns[column])
	if err != nil {
		code, hint := status.DataLoss, "the data are damaged; write them again"
		if _, large := errors.AsType[arrowmeta.Unsupported](err); large {
			code, hint = status.Unsupported, "write smaller record batches"
		}
		return nil, status.Errorf(code, "arrowio", "field %q: record batch %d: %w", field.Name, i, err).
			WithHint("%s", hint).With("field", field.Name).With("record batch", i)
	}
	return out, nil
}
