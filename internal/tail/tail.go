// Package tail reads the schema of an Arrow or Parquet file from the file's last bytes, for
// a browser page that opens a large file and must not read all of it.
package tail

import (
	"bytes"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// Max is the size of the largest footer or stream that Read reads. The bound limits the
// memory of a browser page.
const Max = 16 << 20

// File is what Read found.
type File struct {
	Format string // "arrow" or "parquet"
	Schema arrowmeta.Schema
	Rows   int64 // -1 if unknown: the footer of an Arrow file has no row counts
	Need   int64 // if the tail is too short: how many of the last bytes to pass instead; else 0
}

// Read reads the footer of an Arrow IPC file or of a Parquet file from the last bytes of
// the file, which has size bytes. If the tail is too short, Need is set and the schema is
// empty. A stream has no footer, so the tail must be the whole stream. Rows of an Arrow
// file are counted only if the tail is the whole file. The error is DataLoss for damaged
// data, with the attribute "offset", and Unsupported for other files.
func Read(tail []byte, size int64) (*File, error) {
	if int64(len(tail)) > size {
		return nil, status.Errorf(status.InvalidArgument, "tail", "%d bytes are not the last of %d", len(tail), size)
	}
	all := int64(len(tail)) == size
	if len(tail) < 16 && !all {
		return &File{Rows: -1, Need: min(size, 64<<10)}, nil
	}
	if bytes.HasSuffix(tail, []byte(parquet.Magic)) || bytes.HasSuffix(tail, []byte(parquet.Encrypted)) {
		return readParquet(tail, size)
	}
	if all && size <= Max {
		return readWhole(tail)
	}
	switch offset, n, found, err := arrowmeta.FooterOf(tail, size); {
	case err != nil:
		return nil, err
	case found:
		f, footer, err := cut("arrow", tail, size, offset, n, "look at the file with meshfeed inspect")
		if footer == nil {
			return f, err
		}
		f.Schema, err = arrowmeta.ReadFooter(footer, offset)
		return f, err
	case size <= Max:
		return &File{Rows: -1, Need: size}, nil
	}
	return nil, status.Errorf(status.Unsupported, "tail", "the file has no footer of Arrow or Parquet at its end, and is too large to be read whole: %d bytes", size).
		WithHint("a stream of record batches can be looked at with meshfeed inspect")
}

// readParquet reads the footer of a Parquet file.
func readParquet(tail []byte, size int64) (*File, error) {
	offset, n, err := parquet.FooterOf(tail, size)
	if err != nil {
		return nil, err
	}
	f, footer, err := cut("parquet", tail, size, offset, n, "write larger row groups, or an Arrow IPC file")
	if footer == nil {
		return f, err
	}
	if f.Schema, f.Rows, err = parquet.ReadSchema(footer); err != nil {
		return nil, parquet.Damaged("footer", offset, err)
	}
	return f, nil
}

// cut returns the footer of n bytes at an offset, and a File to fill in. If the footer
// begins before the tail, the returned footer is nil and Need is set. If the footer is
// larger than Max, the error has the hint tooLarge.
func cut(format string, tail []byte, size, offset int64, n int, tooLarge string) (*File, []byte, error) {
	f, need := &File{Format: format, Rows: -1}, size-offset
	switch {
	case n > Max:
		return nil, nil, status.Errorf(status.Unsupported, "tail", "footer at byte %d: the footer has %d bytes, but at most %d are read here", offset, n, Max).
			WithHint("%s", tooLarge).With("offset", offset)
	case int64(len(tail)) < need:
		f.Need = need
		return f, nil, nil
	}
	return f, tail[len(tail)-int(need):][:n], nil
}

// readWhole reads a file or stream, and counts its rows.
func readWhole(data []byte) (*File, error) {
	r := bytes.NewReader(data)
	meta, err := arrowmeta.Read(r, int64(len(data)))
	if err != nil {
		return nil, err
	}
	f := &File{Format: "arrow", Schema: meta.Schema}
	err = meta.Scan(r, 0, len(meta.Batches), func(_ int, b *arrowmeta.RecordBatch) error {
		f.Rows += b.Length // cannot overflow: at most 2^21 batches, of 8 bytes or more, with up to 2^40 rows each
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}
