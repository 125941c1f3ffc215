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

// formats are the formats of files, in the order in which they are tried.
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
	f, err := formatOf(ctx, resident.NewFile(b))
	return err == nil && f != nil
}

// formatOf returns the format of a file by its first bytes, or nil.
func formatOf(ctx context.Context, content *resident.File) (format.Format, error) {
	head := make([]byte, min(format.HeadBytes, content.Size()))
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return nil, err
	}
	for _, f := range formats {
		if f.Recognize(head, content.Size()) {
			return f, nil
		}
	}
	return nil, nil
}
