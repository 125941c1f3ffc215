package arrowio

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/audit"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/codec"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// ipcFormat is one of the two formats of Arrow IPC.
type ipcFormat struct {
	name   string
	begins func(head []byte, size int64) bool
	read   func(r io.ReaderAt, size int64, digest io.Writer) (*arrowmeta.File, error)
}

var (
	// ipcFile is the format of files, which end with a footer.
	ipcFile = ipcFormat{"file", arrowmeta.IsFile, arrowmeta.ReadFile}

	// ipcStream is the format of streams: messages without a footer, which can
	// only be located by reading their headers in order.
	ipcStream = ipcFormat{"stream", arrowmeta.IsStream, arrowmeta.ReadStream}
)

func (f ipcFormat) recognize(head []byte, size int64) bool { return f.begins(head, size) }

func (f ipcFormat) open(ctx context.Context, content *resident.File) (contents, error) {
	digest := sha256.New()
	meta, err := f.read(blob.Reader(ctx, content), content.Size(), digest)
	if err != nil {
		return nil, err
	}
	c := &ipc{content: content, meta: meta}
	c.facts = metadata{format: f.name, schema: &meta.Schema, digest: [32]byte(digest.Sum(nil)), units: extents(meta.Batches), dictionaries: extents(meta.Dictionaries)}
	for i := range meta.Columns {
		c.facts.located = append(c.facts.located, meta.Columns[i].Located)
	}
	return c, nil
}

// ipc is the contents of an IPC file or stream. Its units are record batches.
type ipc struct {
	content *resident.File
	meta    *arrowmeta.File
	facts   metadata
}

func extents(blocks []arrowmeta.Block) []resident.Extent {
	list := make([]resident.Extent, len(blocks))
	for i, b := range blocks {
		list[i] = resident.Extent{Offset: b.Body(), Length: b.BodyLen}
	}
	return list
}

func (c *ipc) metadata() *metadata { return &c.facts }

func (c *ipc) unchecked() []Unchecked { return audit.Uncheckable(c.meta.Columns) }

func (c *ipc) verify(ctx context.Context, fields []int, progress func(bytes int64)) error {
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

func (c *ipc) reader(ctx context.Context) io.ReaderAt { return blob.Reader(ctx, c.content) }

func (c *ipc) scan(ctx context.Context, first, last int, visit func(i int, u unit) error) error {
	u := ipcBatch{file: c, ctx: ctx}
	return c.meta.Scan(c.reader(ctx), first, last, func(i int, header *arrowmeta.RecordBatch) error {
		u.number, u.header = i, header
		return visit(i, &u)
	})
}

// promise implements contents: the stored bytes, and the sizes that the buffers begin with.
// Decode takes exactly that.
func (c *ipc) promise(ctx context.Context, i, column int, field *arrowtype.Field) (int64, error) {
	stored, decoded, err := c.sizes(ctx, i, column, field)
	return stored + decoded, err
}

func (c *ipc) likely(ctx context.Context, i, column int, field *arrowtype.Field) (int64, error) {
	_, decoded, err := c.sizes(ctx, i, column, field)
	return decoded, err
}

// sizes returns the bytes of a column's buffers, as they are stored and decoded.
func (c *ipc) sizes(ctx context.Context, i, column int, field *arrowtype.Field) (stored, decoded int64, err error) {
	b, err := c.meta.Batch(c.reader(ctx), i)
	if err != nil || b.Compression == arrowmeta.Uncompressed {
		return 0, 0, err
	}
	col, head := &c.meta.Columns[column], make([]byte, 8)
	for range field.Levels {
		for _, at := range b.Buffers(col) {
			if stored += at.Length; at.Length == 0 {
				continue
			}
			if err := c.content.ReadFull(ctx, head, c.facts.units[i].Offset+at.Offset); err != nil {
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

func (c *ipc) decode(ctx context.Context, i, column int, field *arrowtype.Field, lists bool, _ int64) (*buffers.Decoded, error) {
	b, err := c.meta.Batch(c.reader(ctx), i)
	if err != nil {
		return nil, err
	}
	u := unpacker{r: c.reader(ctx), body: c.facts.units[i].Offset, batch: b, lists: lists}
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

// ipcBatch is a record batch.
type ipcBatch struct {
	file   *ipc
	ctx    context.Context
	number int
	header *arrowmeta.RecordBatch
}

func (u *ipcBatch) rows() int64 { return u.header.Length }

func (u *ipcBatch) encoding() string {
	if u.header.Compression == arrowmeta.Uncompressed {
		return ""
	}
	return u.header.Compression.String()
}

func (u *ipcBatch) nulls(column int) buffers.Nulls {
	outer := &u.file.meta.Columns[column]
	for c := outer; c.Located; c = inner(c) {
		if u.header.Node(c).Nulls > 0 {
			return buffers.Nulls{May: true, Has: c == outer}
		}
		if len(c.Children) != 1 && arrowtype.Member(c.Field) < 0 {
			break
		}
	}
	return buffers.Nulls{}
}

func (u *ipcBatch) setPositions(to *buffers.Column, batch, column int) {
	b, col, body := u.header, &u.file.meta.Columns[column], u.file.facts.units[u.number].Offset
	for n := range to.Planes {
		if n > 0 && len(col.Children) == 0 { // the bytes of text
			p, bytes := &to.Planes[n], b.Buffers(col)[dataBuffer(col)+1]
			p.Data[batch], p.Length[batch] = body+bytes.Offset, bytes.Length
			if p.Valid != nil {
				p.Valid[batch] = -1
			}
			break
		}
		if n > 0 {
			col = inner(col)
		}
		p, node, stored := &to.Planes[n], b.Node(col), b.Buffers(col)
		if p.Valid != nil {
			p.Valid[batch] = -1
			if col.Validity && node.Nulls > 0 && u.encoding() == "" {
				p.Valid[batch] = body + stored[0].Offset
			}
		}
		if p.Data != nil {
			p.Data[batch] = body + stored[dataBuffer(col)].Offset
		}
		if p.Length != nil {
			p.Length[batch] = node.Length
		}
		if p.Buffers != nil {
			for _, data := range stored[dataBuffer(col)+1:] {
				p.Buffers[batch] = append(p.Buffers[batch], buffers.Extent{At: body + data.Offset, Bytes: data.Length})
			}
		}
	}
}

// inner returns the column below a list, or that which holds the rows of a struct.
func inner(c *arrowmeta.Column) *arrowmeta.Column {
	return &c.Children[max(arrowtype.Member(c.Field), 0)]
}

// dataBuffer returns the index, among a column's buffers, of the one that holds
// offsets, indices or values. A validity bitmap is before it.
func dataBuffer(c *arrowmeta.Column) int {
	if c.Validity {
		return 1
	}
	return 0
}
