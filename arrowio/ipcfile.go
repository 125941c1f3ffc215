package arrowio

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// ipcFile is the format of Arrow IPC files, which end with a footer.
type ipcFile struct{}

func (ipcFile) recognize(head []byte, _ int64) bool { return arrowmeta.IsFile(head) }

func (ipcFile) open(ctx context.Context, content *resident.File) (contents, error) {
	meta, err := arrowmeta.ReadFile(blob.Reader(ctx, content), content.Size())
	if err != nil {
		return nil, err
	}
	c := newIPC("file", content, meta)
	c.firstUser = func(arrowmeta.Block) int { return 0 } // dictionaries are read before record batches
	return c, nil
}
