package arrowio

import (
	"cmp"
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// ipcStream is the format of Arrow IPC streams: messages without a footer, in the
// order in which they count.
type ipcStream struct{}

func (ipcStream) recognize(head []byte, size int64) bool { return arrowmeta.IsStream(head, size) }

func (ipcStream) open(ctx context.Context, content *resident.File) (contents, error) {
	meta, err := arrowmeta.ReadStream(blob.Reader(ctx, content), content.Size())
	if err != nil {
		return nil, err
	}
	c := newIPC("stream", content, meta)
	c.replaces = true
	c.firstUser = func(dictionary arrowmeta.Block) int {
		i, _ := slices.BinarySearchFunc(meta.Batches, dictionary.Offset, func(b arrowmeta.Block, off int64) int { return cmp.Compare(b.Offset, off) })
		return i
	}
	return c, nil
}
