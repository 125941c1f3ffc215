package arrowio

import (
	"context"
	"crypto/sha256"
	"runtime"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/audit"
	"github.com/meshfeed/meshfeed/arrowio/internal/verify"
	"github.com/meshfeed/meshfeed/core/source"
)

// VerifyOptions select what Verify does.
type VerifyOptions struct {
	Hash bool // hash every byte of every file

	// Progress, if set, is called with the bytes done and the bytes to do: all bytes of
	// the files, and again all of them with Hash.
	Progress func(done, total int64)
}

// Verification describes a dataset without damage.
type Verification struct {
	Records     int64
	Batches     int64
	Bytes       int64 // size of all files
	Fingerprint source.Fingerprint
	Columns     int         // in the first file
	Unchecked   []Unchecked // what Verify does not check of these columns
	Hash        *Hash       // nil unless VerifyOptions.Hash is set
}

// Unchecked is a property of a column that Verify does not check: the column with the names of
// its parents, its type, and what is not checked.
type Unchecked = audit.Unchecked

// Verify reads the whole dataset. For every column and its child columns, it checks:
//
//   - all bytes can be read;
//   - the number of nulls equals the number in the metadata;
//   - offsets, views, run ends and unions refer to existing values;
//   - indices lie in their dictionary, and text is UTF-8.
//
// Verify then gathers all rows of every fixed field. A list with another length than
// the field's shape is an error. The error for damage names the file and the position.
// [Verification].Unchecked lists what Verify does not check.
func (d *Dataset) Verify(ctx context.Context, o VerifyOptions) (v Verification, err error) {
	ctx, leave, err := enter(ctx, d.table.Calls)
	if err != nil {
		return v, err
	}
	defer leave()
	v = Verification{Records: d.Len(), Bytes: d.files.Bytes(), Columns: len(d.files.List[0].Schema.Fields)}
	for _, f := range d.files.List {
		v.Batches += int64(len(f.Units))
		for _, u := range f.Unchecked {
			if !slices.Contains(v.Unchecked, u) {
				v.Unchecked = append(v.Unchecked, u)
			}
		}
	}
	total := v.Bytes
	if o.Hash {
		total *= 2
	}
	progress := func(done int64) {
		if o.Progress != nil {
			o.Progress(done, total)
		}
	}
	if err := verify.Run(ctx, d.files, filesAtOnce(), d.table, progress); err != nil {
		return v, err
	}
	if o.Hash {
		done := v.Bytes
		hash, err := d.hash(ctx, filesAtOnce(), func(bytes int64) { done += bytes; progress(done) })
		if err != nil {
			return v, err
		}
		v.Hash = &hash
	}
	v.Fingerprint, err = d.Fingerprint(ctx)
	return v, err
}

// Hash is the SHA-256 of every byte of a dataset's files. Unlike a fingerprint, it
// proves that two hosts have the same files.
type Hash struct {
	Sum   [sha256.Size]byte   // over the hashes of the files, one after the other
	Files [][sha256.Size]byte // hash of each file, in the order of the records
}

// Hash reads all files from end to end. It reads one file at a time, so that a
// training program loses at most one core. The result is kept for later calls.
func (d *Dataset) Hash(ctx context.Context) (Hash, error) {
	ctx, leave, err := enter(ctx, d.table.Calls)
	if err != nil {
		return Hash{}, err
	}
	defer leave()
	return d.hash(ctx, 1, func(int64) {})
}

// hash hashes the files, limit at a time. It calls progress with the number of bytes that are
// done since the last call.
func (d *Dataset) hash(ctx context.Context, limit int, progress func(bytes int64)) (Hash, error) {
	d.hashed.Lock()
	defer d.hashed.Unlock()
	if d.hashed.value != nil {
		progress(d.files.Bytes())
		return *d.hashed.value, nil
	}
	sums, err := verify.Hash(ctx, d.files, limit, progress)
	if err != nil {
		return Hash{}, err
	}
	out, whole := Hash{Files: sums}, sha256.New()
	for _, sum := range sums {
		whole.Write(sum[:])
	}
	whole.Sum(out.Sum[:0])
	d.hashed.value = &out
	return out, nil
}

// filesAtOnce returns how many files are verified or hashed at a time, which keeps processors busy.
func filesAtOnce() int { return min(4*runtime.GOMAXPROCS(0), 32) }
