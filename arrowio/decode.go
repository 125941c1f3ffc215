package arrowio

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// maxDecoded bounds the decompressed size of a buffer.
const maxDecoded = 2 << 30

// Decode implements table.Store. If the gather that began a decoding is canceled,
// the decoding goes on, because another gather may wait for it. A close of the
// dataset cancels it.
func (s *store) Decode(ctx context.Context, batch int32, field int) (*table.Decoded, error) {
	return s.cache.get(ctx, cacheKey{batch, field}, func() (*table.Decoded, error) {
		if err := s.table.Calls.Enter(); err != nil {
			return nil, err
		}
		defer s.table.Calls.Leave()
		return (*Dataset)(s).decode(s.life, batch, s.table.Fields[field], s.columns[field], false)
	})
}

// decode decodes a field of one record batch, as contents.decode does.
func (d *Dataset) decode(ctx context.Context, batch int32, field *arrowtype.Field, column int, lists bool) (*table.Decoded, error) {
	f := (*store)(d).of(batch)
	out, err := f.contents.decode(ctx, int(batch)-f.first, column, field, lists)
	if err != nil {
		return nil, f.named(err)
	}
	return out, f.content.Recheck()
}

// unpacker reads and decompresses the buffers of one record batch.
type unpacker struct {
	r     io.ReaderAt
	body  int64 // offset of the record batch's buffers in the file
	batch *arrowmeta.RecordBatch
	lists bool // read validity bitmaps and list offsets, but no values

	reading, unpacking time.Duration // of all buffers so far
}

// field reads the buffers of a column, from the outermost lists to the values.
func (u *unpacker) field(field *arrowtype.Field, col *arrowmeta.Column) (*table.Decoded, error) {
	out := &table.Decoded{Levels: make([]table.DecodedLevel, len(field.Levels))}
	for n, level := range field.Levels {
		node, to := u.batch.Node(col), &out.Levels[n]
		to.Length = node.Length
		var err error
		if col.Validity && node.Nulls > 0 {
			if to.Valid, err = u.buffer(col, 0, node.Length); err != nil {
				return nil, err
			}
		}
		_, isList := level.(arrowtype.List)
		if level.Buffer().Bits > 0 && (isList || !u.lists) {
			if to.Data, err = u.buffer(col, dataBuffer(col), node.Length); err != nil {
				return nil, err
			}
		}
		out.Bytes += int64(len(to.Valid) + len(to.Data))
		out.Reading, out.Unpacking = u.reading, u.unpacking
		if n+1 < len(field.Levels) {
			col = &col.Children[0]
		}
	}
	return out, nil
}

// buffer returns a buffer's decompressed bytes: at least as many as the column's
// length needs.
func (u *unpacker) buffer(col *arrowmeta.Column, i int, length int64) ([]byte, error) {
	at := u.batch.Buffers(col)[i]
	need, ok := col.MinBytes(i, length)
	if !ok || need > maxDecoded {
		return nil, fmt.Errorf("a buffer for %d values", length)
	}
	stored := make([]byte, at.Length)
	began := time.Now()
	_, err := u.r.ReadAt(stored, u.body+at.Offset)
	read := time.Now()
	u.reading += read.Sub(began)
	if err != nil {
		return nil, err
	}
	defer func() { u.unpacking += time.Since(read) }()
	out, err := pooled.unpack(u.batch.Compression, stored, func(size int64) error {
		// A writer may pad a buffer, to a multiple of 64 bytes or more. A much
		// larger size means that the file is damaged.
		if size < need || size > need+need/8+4096 {
			return fmt.Errorf("a buffer of %d bytes for %d values, which need %d", size, length, need)
		}
		return nil
	})
	if err == nil && int64(len(out)) < need {
		err = fmt.Errorf("a buffer of %d bytes where %d are needed", len(out), need)
	}
	return out, err
}
