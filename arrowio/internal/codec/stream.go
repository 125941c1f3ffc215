package codec

import (
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/meshfeed/meshfeed/internal/guard"
)

// Streams has the suffixes of compressed files that Stream reads.
var Streams = []string{".gz", ".zst"}

// Stream decompresses a file with one of these suffixes to a writer. It takes a constant amount of
// memory, and its caller bounds what is written. An error of the reader or the writer comes back as it
// is, or is wrapped.
func Stream(to io.Writer, from io.Reader, suffix string) error {
	return guard.Call("arrowio", func() error {
		if suffix == ".gz" {
			r, err := gzip.NewReader(from)
			if err != nil {
				return short(err)
			}
			_, err = r.WriteTo(to)
			return short(err)
		}
		r, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = r.WriteTo(to)
		return err
	})
}

// short returns the error for a stream that ends in its header.
func short(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
