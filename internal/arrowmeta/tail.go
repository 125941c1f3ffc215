package arrowmeta

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/meshfeed/meshfeed/core/status"
)

// MaxTail bounds the bytes that ReadTail asks for, so that a browser can read
// the footer of any file.
const MaxTail = 16 << 20

// Tail describes a file as far as its last bytes allow.
type Tail struct {
	Format string // "arrow" or "parquet"
	Schema Schema
	Rows   int64 // -1 if only the record batches say
	Need   int64 // how many of the last bytes are needed for more; 0 if nothing is missing
}

// ReadTail reads the footer of an Arrow IPC file or of a Parquet file from the
// last bytes of the file, which has size bytes. If it needs more bytes, Need says
// how many, and the schema is empty. A stream has no footer and is needed whole.
// Rows of an Arrow file are counted only if the tail is the whole file. The
// errors are those of [Read].
func ReadTail(tail []byte, size int64) (*Tail, error) {
	if int64(len(tail)) > size {
		return nil, status.Errorf(status.InvalidArgument, "arrowmeta", "%d bytes are not the last of %d", len(tail), size)
	}
	switch {
	case bytes.HasSuffix(tail, []byte(parquetMagic)) || bytes.HasSuffix(tail, []byte(parquetEncrypted)):
		return parquetTail(tail, size)
	case int64(len(tail)) == size && size <= MaxTail:
		return whole(tail)
	case len(tail) < trailer:
		return &Tail{Rows: -1, Need: min(size, 64<<10)}, nil
	case bytes.HasSuffix(tail, []byte(magic)):
		return arrowTail(tail, size)
	case size <= MaxTail:
		return &Tail{Rows: -1, Need: size}, nil
	}
	return nil, status.Errorf(status.Unsupported, "arrowmeta", "the file has no footer of Arrow or Parquet at its end, and is too large to be read whole: %d bytes", size).
		WithHint("a stream of record batches can be looked at with meshfeed inspect")
}

// arrowTail reads the footer of a file of which only the tail is known.
func arrowTail(tail []byte, size int64) (*Tail, error) {
	n := int64(int32(binary.LittleEndian.Uint32(tail[len(tail)-trailer:])))
	at := position{"footer", -1, size - int64(trailer) - n}
	if n <= 0 || n > size-front-int64(trailer) {
		return nil, at.damaged(fmt.Errorf("a footer of %d bytes in a file of %d", n, size))
	}
	if n > MaxTail {
		return nil, at.error(status.Unsupported, fmt.Errorf("the footer has %d bytes, but at most %d are read here", n, MaxTail)).
			WithHint("look at the file with meshfeed inspect")
	}
	if need := n + int64(trailer); int64(len(tail)) < need {
		return &Tail{Format: "arrow", Rows: -1, Need: need}, nil
	}
	footer := tail[len(tail)-trailer-int(n) : len(tail)-trailer]
	f := File{Size: size}
	if err := f.decodeFooter(footer, at.offset); err != nil {
		return nil, at.damaged(err)
	}
	return &Tail{Format: "arrow", Schema: f.Schema, Rows: -1}, nil
}

// whole reads a file or stream, and counts its rows.
func whole(data []byte) (*Tail, error) {
	r := bytes.NewReader(data)
	f, err := Read(r, int64(len(data)))
	if err != nil {
		return nil, err
	}
	t := &Tail{Format: "arrow", Schema: f.Schema}
	err = f.Scan(r, 0, len(f.Batches), func(_ int, b *RecordBatch) error {
		t.Rows += b.Length // of less than 2^24 batches, 2^40 each
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}
