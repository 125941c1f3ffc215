package arrowio

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/codec"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/jsonl"
	"github.com/meshfeed/meshfeed/arrowio/internal/parts"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/status"
)

// decompressed returns the text of a compressed file with JSON Lines or TFRecord. Another file comes back
// as it is. It takes over the blob, also if it fails.
func (x indexer) decompressed(ctx context.Context, b blob.Blob) (blob.Blob, error) {
	suffix := files.Compression(b.Name())
	if suffix == "" && hasGzip(ctx, b) {
		suffix = ".gz"
	}
	if suffix == "" {
		return b, nil
	}
	text, err := x.made.Of(ctx, b, "text 1", func(w io.Writer) error {
		r, end, err := x.sequence(ctx, b)
		if err != nil {
			return err
		}
		defer end()
		to, from := &written{w: w}, &readable{r: r}
		err = codec.Stream(to, from, suffix)
		if known := errors.Join(to.err, from.err); known != nil || err == nil {
			return known
		}
		return status.Errorf(status.DataLoss, "arrowio", "the compressed text is damaged or cut short after %d bytes of text: %w", to.bytes, err).
			WithHint("write or copy the file again")
	})
	if err != nil {
		_ = b.Close()
		return nil, (&units.File{File: &files.File{Path: b.Name()}}).Named(err)
	}
	return newMade(b, text), nil
}

// open opens a text of JSON Lines.
func (x indexer) open(ctx context.Context, content *resident.File) (format.Contents, error) {
	var lines []format.Run
	err := x.index(ctx, content.Blob, jsonl.IndexName, func(index []byte) (ok bool) {
		lines, ok = jsonl.ReadIndex(index, content.Size())
		return ok
	}, func() (index []byte, err error) {
		lines, err = jsonl.Count(ctx, content)
		return format.AppendRuns(nil, lines), err
	})
	if err != nil {
		return nil, err
	}
	return jsonl.Open(ctx, content, lines, x.columns)
}

// sniffed is how long the first line may be of a file that is not named as JSON Lines are.
const sniffed = 64 << 10

// recognizes reports whether a file is text of JSON Lines, by its name, or because its first line is an
// object with a key.
func (indexer) recognizes(ctx context.Context, content *resident.File) (bool, error) {
	if files.IsLines(content.Name()) && content.Size() > 0 {
		return true, nil
	}
	head := make([]byte, min(sniffed, content.Size()))
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return false, err
	}
	line, _, whole := bytes.Cut(head, []byte("\n"))
	return (whole || int64(len(head)) == content.Size()) && jsonl.IsObject(line), nil
}

// written counts what is written, and keeps the error of a writer.
type written struct {
	w     io.Writer
	bytes int64
	err   error
}

func (w *written) Write(p []byte) (n int, err error) {
	n, w.err = w.w.Write(p)
	w.bytes += int64(n)
	return n, w.err
}

// readable keeps the error of a reader.
type readable struct {
	r   io.Reader
	err error
}

func (r *readable) Read(p []byte) (n int, err error) {
	if n, err = r.r.Read(p); err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// made is a file with other bytes, which were made of its content, or with a copy of its bytes.
type made struct {
	blob.Blob
	text parts.Bytes
}

// copied is a blob of bytes that are kept here.
type copied interface{ copied() }

func newMade(b blob.Blob, text parts.Bytes) blob.Blob {
	if _, versioned := b.(blob.Versioned); versioned {
		return versionedText{made{b, text}}
	}
	return made{b, text}
}

func (made) copied() {}

// Size implements blob.Blob.
func (b made) Size() int64 { return b.text.Size }

// ReadAt implements blob.Blob.
func (b made) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p = p[:max(min(int64(len(p)), b.text.Size-offset), 0)]
	return b.text.ReadAt(p, offset)
}

// Close implements blob.Blob.
func (b made) Close() error { return errors.Join(b.text.Close(), b.Blob.Close()) }

// versionedText is a text of a file with a version.
type versionedText struct{ made }

// Version implements blob.Versioned.
func (b versionedText) Version() string { return b.Blob.(blob.Versioned).Version() }
