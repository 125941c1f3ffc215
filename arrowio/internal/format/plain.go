package format

import (
	"context"
	"io"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Plain implements the methods of Contents that need no values, for files without dictionaries in which a
// run of bytes holds all columns of a unit. A format with encoded units has a Decoding of its own.
type Plain struct{ Facts Metadata }

// Metadata implements Contents.
func (c *Plain) Metadata() *Metadata { return &c.Facts }

// Decoding implements Contents. It is not called if no unit is encoded.
func (*Plain) Decoding(context.Context, int, int, *arrowtype.Field) (Decoding, error) {
	return Decoding{}, status.New(status.Internal, "arrowio", "rows that are stored plainly were decoded")
}

// Size implements Contents.
func (*Plain) Size(context.Context, int, int, *arrowtype.Field) (int64, error) { return -1, nil }

// Stored implements Contents.
func (c *Plain) Stored(unit, _ int) []resident.Extent { return c.Facts.Units[unit : unit+1] }

// Dictionaries implements Contents. No column has one.
func (*Plain) Dictionaries(_ context.Context, columns []int, _ []*arrowtype.Field) ([][]*arrowtype.Dictionary, error) {
	return make([][]*arrowtype.Dictionary, len(columns)), nil
}

// Visit implements Scan of Contents for units that are in memory.
func Visit(first, last int, unit func(i int) Unit, visit func(i int, u Unit) error) error {
	for i := first; i < last; i++ {
		if err := visit(i, unit(i)); err != nil {
			return err
		}
	}
	return nil
}

// ReadAll reads all bytes of a file, to verify a format in which every value is valid.
func ReadAll(ctx context.Context, content *resident.File, progress func(bytes int64)) error {
	buffer := make([]byte, min(1<<20, content.Size()))
	for at := int64(0); at < content.Size(); at += int64(len(buffer)) {
		buffer = buffer[:min(int64(len(buffer)), content.Size()-at)]
		if err := content.ReadFull(ctx, buffer, at); err != nil {
			return err
		}
		progress(int64(len(buffer)))
	}
	return nil
}

// Tailed is a blob with more bytes behind it, which lie in memory.
type Tailed struct {
	blob.Blob
	Tail []byte
}

// Size implements blob.Blob.
func (b Tailed) Size() int64 { return b.Blob.Size() + int64(len(b.Tail)) }

// ReadAt implements blob.Blob.
func (b Tailed) ReadAt(ctx context.Context, p []byte, offset int64) (n int, err error) {
	size := b.Blob.Size()
	if left := size - offset; left > 0 {
		if n, err = b.Blob.ReadAt(ctx, p[:min(left, int64(len(p)))], offset); n < len(p) && int64(n) < left {
			return n, err
		}
	}
	if n < len(p) {
		n += copy(p[n:], b.Tail[min(offset+int64(n)-size, int64(len(b.Tail))):])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
