package arrowio

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/tar"
	"github.com/meshfeed/meshfeed/arrowio/internal/parts"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
)

// indexer opens files that have no index of their own, JSON Lines, TFRecord and archives: it reads them whole, and
// keeps what it finds.
type indexer struct {
	made    *parts.Made
	columns []string // that become fields; nil for all
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
