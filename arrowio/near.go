package arrowio

import (
	"bufio"
	"context"
	"io"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/flat"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/images"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/tar"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/status"
)

// Files that are read from end to end are read in pieces of pieceBytes, each by several requests side by
// side, and so many files at a time.
const (
	pieceBytes = 32 << 20
	atOnce     = 4
)

var turns = semaphore.NewWeighted(atOnce)

// near returns a file that is read here. If it is far away, it is fetched whole, once for all processes of the
// host, and its bytes are kept like the text of decompressed files.
func (x indexer) near(ctx context.Context, b blob.Blob) (blob.Blob, error) {
	if _, copied := b.(copied); copied || !x.far {
		return b, nil
	}
	text, err := x.made.Of(ctx, b, "file 1", func(w io.Writer) error {
		r, end, err := x.sequence(ctx, b)
		if err == nil {
			defer end()
			_, err = io.Copy(w, r)
		}
		return err
	})
	if err != nil {
		return nil, (&units.File{File: &files.File{Path: b.Name()}}).Named(err)
	}
	return newMade(b, text), nil
}

// approach fetches a file far away whose end is held, if its format is not read by units. A file that no
// format knows is not fetched.
func (x indexer) approach(ctx context.Context, content *resident.File) error {
	if !x.far || flat.DocumentsOf(content) != nil || tar.ShardOf(content) != nil || images.FolderOf(content) != nil {
		return nil
	}
	last := make([]byte, min(format.EdgeBytes, content.Size()))
	if err := content.ReadFull(ctx, last, content.Size()-int64(len(last))); err != nil {
		return err
	}
	if recognize(byUnits, nil, last, content.Size()) != nil {
		return nil
	}
	f, err := formatOf(ctx, content)
	whole := f != nil
	if err == nil && !whole {
		whole, err = hasExamples(ctx, content)
	}
	if err == nil && !whole {
		whole, err = x.recognizes(ctx, content)
	}
	if err != nil || !whole {
		return err
	}
	b, err := x.near(ctx, content.Blob)
	if err == nil {
		content.Blob = b
	}
	return err
}

// sequence returns a reader of all bytes. Far away, it waits for its turn, and each of its reads is long.
func (x indexer) sequence(ctx context.Context, b blob.Blob) (r io.Reader, end func(), err error) {
	r = io.NewSectionReader(blob.Reader(ctx, b), 0, b.Size())
	if !x.far {
		return r, func() {}, nil
	}
	if err := turns.Acquire(ctx, 1); err != nil {
		return nil, nil, status.Ended("arrowio", "the opening", err)
	}
	return bufio.NewReaderSize(r, int(min(b.Size()+1, pieceBytes))), func() { turns.Release(1) }, nil
}

// nearOpener opens files that are read here.
type nearOpener struct {
	blob.Opener
	indexer
}

// Open implements blob.Opener.
func (o nearOpener) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	b, err := o.Opener.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	near, err := o.near(ctx, b)
	if err != nil {
		_ = b.Close()
	}
	return near, err
}

// stamping is an opener that notes the stamps of the blobs of a file.
type stamping struct {
	blob.Opener
	stamps    []string
	unstamped bool
}

// Open implements blob.Opener.
func (o *stamping) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	b, err := o.Opener.Open(ctx, e)
	if s, ok := b.(blob.Stamped); ok && err == nil {
		o.stamps = append(o.stamps, s.Stamp())
	} else {
		o.unstamped = true
	}
	return b, err
}

// stamp joins the stamps, if all blobs have one.
func (o *stamping) stamp() string {
	if o.unstamped {
		return ""
	}
	return strings.Join(o.stamps, "\n")
}
