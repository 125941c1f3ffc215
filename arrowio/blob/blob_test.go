package blob_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/status"
)

func TestMemory(t *testing.T) {
	m := blobtest.Memory{}
	blobtest.Run(t, m, "dir", func(name string, data []byte) { m["dir/"+name] = data })
}

func TestReadFull(t *testing.T) {
	b, p := blobtest.Bytes("x", bytes.NewReader([]byte("abc"))), make([]byte, 2)
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		if err := blob.ReadFull(ctx, b, p, 1); err != nil || string(p) != "bc" {
			t.Errorf("%q, %v", p, err)
		}
		if err := blob.ReadFull(ctx, b, p, 2); err != io.ErrUnexpectedEOF {
			t.Errorf("beyond the end: %v", err)
		}
	}
}

// hung is a disk that does not answer.
type hung struct {
	*bytes.Reader
	asked, release chan struct{}
}

func (h hung) ReadAt([]byte, int64) (int, error) {
	close(h.asked)
	<-h.release
	return 0, io.EOF
}

// TestCancelledReadReturns: the read returns although the disk does not.
func TestCancelledReadReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hung{bytes.NewReader([]byte("abc")), make(chan struct{}), make(chan struct{})}
		defer close(h.release)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		go func() {
			_, err := blob.Reader(ctx, blobtest.Bytes("x", h)).ReadAt(make([]byte, 1), 0)
			got <- err
		}()
		<-h.asked
		cancel()
		if err := <-got; status.CodeOf(err) != status.Cancelled || err.Error() != "arrowio: the read was cancelled" {
			t.Errorf("got %v", err)
		}
	})
}
