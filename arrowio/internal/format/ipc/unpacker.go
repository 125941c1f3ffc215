package ipc

import (
	"fmt"
	"io"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/codec"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// unpacker reads and decompresses the buffers of one record batch.
type unpacker struct {
	r     io.ReaderAt
	body  int64 // offset of the record batch's buffers in the file
	batch *arrowmeta.RecordBatch
	lists bool // read validity bitmaps and list offsets, but no values

	reading, unpacking time.Duration // for all buffers so far
}

// field reads the buffers of a column, from the outermost lists to the values.
func (u *unpacker) field(field *arrowtype.Field, col *arrowmeta.Column) (*buffers.Decoded, error) {
	out := &buffers.Decoded{Levels: make([]buffers.Level, len(field.Levels))}
	for n, level := range field.Levels {
		node, to := u.batch.Node(col), &out.Levels[n]
		if field.Inline(n) {
			if err := u.text(col, out, n, field.Levels[n-1].Buffer().Bits/8); err != nil {
				return nil, err
			}
			break
		}
		to.Length = node.Length
		var err error
		if col.Validity && node.Nulls > 0 {
			if to.Valid, err = u.buffer(col, 0, node.Length); err != nil {
				return nil, err
			}
		}
		_, isList := level.(arrowtype.List)
		if level.Buffer().Bits > 0 && (isList || !u.lists || field.HasTexts()) {
			if to.Data, err = u.buffer(col, dataBuffer(col), node.Length); err != nil {
				return nil, err
			}
		}
		if n == len(field.Levels)-1 && field.HasViews() && !u.lists {
			if err := u.views(col, out, to); err != nil {
				return nil, err
			}
		}
		out.Bytes += int64(len(to.Valid) + len(to.Data))
		if n+1 < len(field.Levels) && !field.Inline(n+1) {
			col = inner(col)
		}
	}
	out.Reading, out.Unpacking = u.reading, u.unpacking
	return out, nil
}

// text reads the bytes of text, which level n of the decoded column holds. It reads none if
// the caller wants no values.
func (u *unpacker) text(col *arrowmeta.Column, out *buffers.Decoded, n int, width int64) (err error) {
	to, above := &out.Levels[n], &out.Levels[n-1]
	if above.Length == 0 {
		return nil
	}
	if to.Length = arrowtype.Integer(above.Data[above.Length*width:], int(width)); to.Length < 0 {
		return fmt.Errorf("its text ends at byte %d", to.Length)
	}
	if to.Length > codec.MaxBuffer {
		return arrowmeta.Unsupported(fmt.Sprintf("text of %d bytes, but at most %d are decoded at once", to.Length, codec.MaxBuffer))
	}
	if u.lists {
		return nil
	}
	// Writers may store more text than the offsets use, for example if they slice an array.
	to.Data, err = u.unpack(u.batch.Buffers(col)[dataBuffer(col)+1], to.Length, codec.MaxBuffer, above.Length)
	out.Bytes += int64(len(to.Data))
	return err
}

// views reads the data buffers of views.
func (u *unpacker) views(col *arrowmeta.Column, out *buffers.Decoded, to *buffers.Level) error {
	to.Buffers = [][]byte{}
	left := int64(codec.MaxBuffer)
	for _, at := range u.batch.Buffers(col)[dataBuffer(col)+1:] {
		data, err := u.unpack(at, 0, left, to.Length)
		if err != nil {
			return err
		}
		to.Buffers = append(to.Buffers, data)
		out.Bytes += int64(len(data))
		left -= int64(len(data))
	}
	return nil
}

// buffer returns a buffer's decompressed bytes: at least as many as the column's
// length needs.
func (u *unpacker) buffer(col *arrowmeta.Column, i int, length int64) ([]byte, error) {
	at := u.batch.Buffers(col)[i]
	need, ok := col.MinBytes(i, length)
	switch {
	case !ok:
		return nil, fmt.Errorf("a buffer for %d values", length)
	case need > codec.MaxBuffer:
		return nil, arrowmeta.Unsupported(fmt.Sprintf("a buffer of %d bytes, but at most %d are decoded at once", need, codec.MaxBuffer))
	}
	// A writer may pad a buffer, to a multiple of 64 bytes or more. A much larger
	// size means that the file is damaged.
	return u.unpack(at, need, need+need/8+4096, length)
}

// unpack returns the decompressed bytes of a buffer for length values: at least need, and
// at most limit bytes.
func (u *unpacker) unpack(at arrowmeta.Buffer, need, limit, length int64) ([]byte, error) {
	stored := make([]byte, at.Length)
	began := time.Now()
	_, err := u.r.ReadAt(stored, u.body+at.Offset)
	read := time.Now()
	u.reading += read.Sub(began)
	if err != nil {
		return nil, err
	}
	defer func() { u.unpacking += time.Since(read) }()
	out, err := codec.Buffer(u.batch.Compression, stored, func(size int64) error {
		if size < need || size > limit {
			return fmt.Errorf("a buffer of %d bytes for %d values, which need %d", size, length, need)
		}
		return nil
	})
	if err == nil && int64(len(out)) < need {
		err = fmt.Errorf("a buffer of %d bytes where %d are needed", len(out), need)
	}
	return out, err
}
