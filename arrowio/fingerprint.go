package arrowio

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/internal/fingerprint"
	"github.com/meshfeed/meshfeed/core/source"
)

// Fingerprint implements source.Source: a SHA-256, shortened to 16 bytes. It
// covers the size, the number of rows and the metadata of every file, in order. The
// metadata are the footer or all message headers: the schema, and the division
// into record batches. If all files together have up to 16 MiB, it covers every
// byte. Otherwise it covers 4 KiB from the record batch of each of 64 records, and
// from each of 64 dictionaries if there are any. A hash of the metadata determines
// which ones and where. Names and times of files are not part of it, but keys and values in
// the names of directories are. [Dataset.Hash]
// covers every byte.
func (d *Dataset) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	ctx, leave, err := enter(ctx, d.table.Calls)
	if err != nil {
		return source.Fingerprint{}, err
	}
	defer leave()
	d.fingerprint.Lock()
	defer d.fingerprint.Unlock()
	if !d.fingerprint.known {
		d.fingerprint.value, d.fingerprint.bytes, err = d.toFingerprint().Sum(ctx)
		d.fingerprint.known = err == nil
	}
	return d.fingerprint.value, err
}

func (d *Dataset) toFingerprint() fingerprint.Dataset { return fingerprint.Dataset{Files: d.files} }
