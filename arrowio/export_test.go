package arrowio

import (
	"context"
	"crypto/sha256"

	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/ipc"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/parquet"
)

// Suffixes lists the suffixes of files, as errors do.
var Suffixes = files.Suffixes

// HashSamples hashes the samples that a fingerprint takes of large files.
func (d *Dataset) HashSamples(ctx context.Context) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	d.toFingerprint().WriteFacts(h)
	_, err = d.toFingerprint().Sample(ctx, h)
	h.Sum(sum[:0])
	return sum, err
}

// KeepOnDisk makes a cache "auto" keep even small fields on disk.
func (d *Dataset) KeepOnDisk() { d.parts.Over = 0 }

// CopyRows makes reads copy the rows of all decoded units, as if they were large.
func (d *Dataset) CopyRows() { d.table.Held = 0 }

// DividePages makes Parquet files that are opened from now on have units of about a number of
// stored bytes. Two units may both read 1/twice of them. The result ends this.
func DividePages(least, twice int64) (end func()) {
	was := formats
	formats = []format.Format{ipc.File, ipc.Stream, parquet.Format{Rules: parquet.Rules{Least: least, Twice: twice}}}
	return func() { formats = was }
}
