package arrowmeta

import (
	"bytes"
	"fmt"

	"github.com/meshfeed/meshfeed/core/status"
)

// MaxTail is the size of the largest footer or stream that ReadTail reads. The bound
// limits the memory of a browser page that opens a file.
const MaxTail = 16 << 20

// Tail is the metadata that ReadTail found in the last bytes of a file.
type Tail struct {
	Format string // "arrow" or "parquet"
	Schema Schema
	Rows   int64 // -1 if unknown: the footer of an Arrow file has no row counts
	Need   int64 // if the tail is too short: how many of the last bytes to pass instead; else 0
}

// ReadTail reads the footer of an Arrow IPC file or of a Parquet file from the
// last bytes of the file, which has size bytes. If the tail is too short, Need is
// set and the schema is empty. A stream has no footer, so the tail must be the whole
// stream. Rows of an Arrow file are counted only if the tail is the whole file. The
// errors are those of [Read].
func ReadTail(tail []byte, size int64) (*Tail, error) {
	if int64(len(tail)) > size {
		return nil, status.Errorf(status.InvalidArgument, "arrowmeta", "%d bytes are not the last of %d", len(tail), size)
	}
	all := int64(len(tail)) == size
	switch {
	case len(tail) < trailer && !all:
		return &Tail{Rows: -1, Need: min(size, 64<<10)}, nil
	case bytes.HasSuffix(tail, []byte(parquetMagic)) || bytes.HasSuffix(tail, []byte(parquetEncrypted)):
		return parquetTail(tail, size)
	case all && size <= MaxTail:
		return whole(tail)
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
	at, n, err := findFooter(tail[len(tail)-trailer:], size)
	if err != nil {
		return nil, err
	}
	t, footer, err := cutFooter("arrow", tail, size, at, n, "look at the file with meshfeed inspect")
	if footer == nil {
		return t, err
	}
	var f File
	if err := f.decodeFooter(footer, at.offset); err != nil {
		return nil, at.damaged(err)
	}
	t.Schema = f.Schema
	return t, nil
}

// cutFooter returns the footer of n bytes at a position, and a Tail to fill in. If
// the footer begins before the tail, the returned footer is nil and Need is set. If
// the footer is larger than MaxTail, the error has the hint tooLarge.
func cutFooter(format string, tail []byte, size int64, at position, n int, tooLarge string) (*Tail, []byte, error) {
	t, need := &Tail{Format: format, Rows: -1}, size-at.offset
	switch {
	case n > MaxTail:
		return nil, nil, at.error(status.Unsupported, fmt.Errorf("the footer has %d bytes, but at most %d are read here", n, MaxTail)).
			WithHint("%s", tooLarge)
	case int64(len(tail)) < need:
		t.Need = need
		return t, nil, nil
	}
	return t, tail[len(tail)-int(need):][:n], nil
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
		t.Rows += b.Length // cannot overflow: at most 2^21 batches, of 8 bytes or more, with up to 2^40 rows each
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}
