package arrowio

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/flat"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/tar"
	"github.com/meshfeed/meshfeed/arrowio/internal/parts"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
)

// indexer opens files that have no index of their own, JSON Lines, TFRecord and archives: it reads them whole, and
// keeps what it finds.
type indexer struct {
	made    *parts.Made
	columns []string // that become fields; nil for all
	far     bool     // reads take long: see near
}

// prepared returns a file as its format reads it, if its name tells that: the documents of an index of
// Megatron, an archive with its records, the text of compressed lines. It takes over the blob, also if it
// fails.
func (x indexer) prepared(ctx context.Context, opener blob.Opener, b blob.Blob, raw bool) (blob.Blob, error) {
	name := b.Name()
	index, archive := strings.EqualFold(path.Ext(name), files.Index), isArchive(name)
	if known := files.IsLines(name) || files.IsRecords(name); raw || index || archive || known && files.Compression(name) == "" {
		near, err := x.near(ctx, b)
		if err != nil {
			_ = b.Close()
			return nil, err
		}
		b = near
	}
	switch {
	case raw:
		return b, nil
	case index:
		return flat.OpenDocuments(ctx, nearOpener{opener, x}, b)
	case archive:
		return x.shard(ctx, b)
	}
	return x.decompressed(ctx, b)
}

// keptIndex is the size of the files whose index is kept. Smaller ones are read again.
const keptIndex = 16 << 20

// index finds the index of a file, or makes it. Known reads an index that was kept, if it fits the file.
func (x indexer) index(ctx context.Context, b blob.Blob, name string, known func(index []byte) bool, find func() (index []byte, err error)) error {
	if b.Size() < keptIndex {
		_, err := find()
		return err
	}
	found := false
	kept, err := x.made.Of(ctx, b, name, func(w io.Writer) error {
		index, err := find()
		if err == nil {
			found = true
			_, err = w.Write(index)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer kept.Close()
	if found {
		return nil
	}
	index := make([]byte, kept.Size)
	if _, err := kept.ReadAt(index, 0); err != nil || !known(index) {
		_, err = find()
		return err
	}
	return nil
}

// isArchive reports whether a file is an archive by its name.
func isArchive(name string) bool { return strings.EqualFold(path.Ext(name), files.Archive) }

// shard returns an archive with the positions of its records. It takes over the blob, also if it fails.
func (x indexer) shard(ctx context.Context, b blob.Blob) (blob.Blob, error) {
	var members []tar.Member
	err := x.index(ctx, b, tar.IndexName, func(index []byte) (ok bool) {
		members, ok = tar.ReadIndex(index, b.Size())
		return ok
	}, func() (index []byte, err error) {
		members, err = tar.Members(ctx, b)
		return tar.AppendIndex(nil, members), err
	})
	var s *tar.Shard
	if err == nil {
		s, err = tar.NewShard(b, members)
	}
	if err != nil {
		_ = b.Close()
		return nil, (&units.File{File: &files.File{Path: b.Name()}}).Named(err)
	}
	return s.AsBlob(), nil
}
