package arrowio

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/flat"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/images"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/ipc"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/parquet"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/tar"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// The formats of files that their first or last bytes tell. Files far away of the formats byUnits are read by
// units, and the others are fetched whole. Open tries the formats in this order.
var (
	byUnits = []format.Format{ipc.File, parquet.Format{Rules: parquet.UsualRules}}
	formats = append(slices.Clip(byUnits), ipc.Stream, flat.NPY{})
)

// contentsOf recognizes and opens the contents of a file. With a type of elements, the file is raw.
func contentsOf(ctx context.Context, content *resident.File, x indexer, raw flat.Raw) (format.Contents, error) {
	if f := images.FolderOf(content); f != nil {
		return f.Open(content)
	}
	if raw.Type != dtype.Invalid && strings.EqualFold(path.Ext(content.Name()), files.Index) {
		return nil, status.New(status.InvalidArgument, "arrowio", "the file is an index of Megatron by its name, and holds no tokens").WithHint("leave dtype out")
	}
	if raw.Type != dtype.Invalid && raw.Skip > 0 {
		return raw.Open(ctx, content)
	}
	if d := flat.DocumentsOf(content); d != nil {
		return d.Open(content), nil
	}
	if s := tar.ShardOf(content); s != nil {
		return s.Open(content), nil
	}
	f, err := formatOf(ctx, content)
	if err != nil {
		return nil, err
	}
	var c format.Contents
	if f != nil {
		c, err = f.Open(ctx, content)
	}
	switch whole := f != nil && err == nil; { // elements may begin as a stream does, so recognition is not enough
	case raw.Type != dtype.Invalid && whole:
		return nil, status.New(status.InvalidArgument, "arrowio", "the file is not raw: it says what its elements are").
			WithHint("leave dtype out; to read its bytes all the same, skip the header")
	case raw.Type != dtype.Invalid:
		return raw.Open(ctx, content)
	case !whole && strings.EqualFold(path.Ext(content.Name()), ".bin"):
		return nil, flat.Untyped(ctx, content)
	case whole:
		return c, nil
	}
	switch c, unread := x.found(ctx, content); {
	case c != nil || unread != nil:
		return c, unread
	case f != nil:
		return nil, err
	}
	return nil, arrowmeta.Foreign(blob.Reader(ctx, content), content.Size())
}

// recognized reports whether a blob has one of the formats. A blob that cannot be read has none.
func recognized(ctx context.Context, b blob.Blob) bool {
	content := resident.NewFile(b, nil)
	f, err := formatOf(ctx, content)
	if err != nil || f != nil {
		return err == nil
	}
	examples, err := hasExamples(ctx, content)
	return err == nil && examples
}

// formatOf returns the format of a file by its last bytes or by its first bytes, or nil.
func formatOf(ctx context.Context, content *resident.File) (format.Format, error) {
	size := content.Size()
	head, last := make([]byte, min(format.EdgeBytes, size)), make([]byte, min(format.EdgeBytes, size))
	if err := content.ReadFull(ctx, last, size-int64(len(last))); err != nil {
		return nil, err
	}
	if f := recognize(formats, nil, last, size); f != nil {
		return f, nil
	}
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return nil, err
	}
	return recognize(formats, head, last, size), nil
}

func recognize(list []format.Format, head, last []byte, size int64) format.Format {
	for _, f := range list {
		if f.Recognize(head, last, size) {
			return f
		}
	}
	return nil
}
