package arrowio

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/ipc"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/parquet"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// formats are the formats of files. Open tries them in this order.
var formats = []format.Format{ipc.File, ipc.Stream, parquet.Format{Rules: parquet.UsualRules}}

// contentsOf recognizes and opens the contents of a file.
func contentsOf(ctx context.Context, content *resident.File) (format.Contents, error) {
	f, err := formatOf(ctx, content)
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, arrowmeta.Foreign(blob.Reader(ctx, content), content.Size())
	}
	return f.Open(ctx, content)
}

// recognized reports whether a blob has one of the formats. A blob that cannot be read has none.
func recognized(ctx context.Context, b blob.Blob) bool {
	f, err := formatOf(ctx, resident.NewFile(b, nil))
	return err == nil && f != nil
}

// formatOf returns the format of a file by its last bytes or by its first bytes, or nil.
func formatOf(ctx context.Context, content *resident.File) (format.Format, error) {
	size := content.Size()
	head, last := make([]byte, min(format.EdgeBytes, size)), make([]byte, min(format.EdgeBytes, size))
	if err := content.ReadFull(ctx, last, size-int64(len(last))); err != nil {
		return nil, err
	}
	if f := recognize(nil, last, size); f != nil {
		return f, nil
	}
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return nil, err
	}
	return recognize(head, last, size), nil
}

func recognize(head, last []byte, size int64) format.Format {
	for _, f := range formats {
		if f.Recognize(head, last, size) {
			return f
		}
	}
	return nil
}
