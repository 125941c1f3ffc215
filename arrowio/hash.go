package arrowio

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/meshfeed/meshfeed/internal/guard"
)

// Hash is the SHA-256 of every byte of a dataset's files. Unlike a fingerprint, it
// proves that two hosts have the same files.
type Hash struct {
	Sum   [sha256.Size]byte   // of the concatenated hashes of the files
	Files [][sha256.Size]byte // in the order of the records
}

// hashed is the result that Hash keeps.
type hashed struct {
	sync.Mutex
	value *Hash
}

// Hash reads all files from end to end. It reads one file at a time, so that a
// training program loses at most one core. The result is kept for later calls.
func (d *Dataset) Hash(ctx context.Context) (Hash, error) {
	if err := d.table.Calls.Enter(); err != nil {
		return Hash{}, err
	}
	defer d.table.Calls.Leave()
	ctx, stop := d.table.Calls.Join(ctx)
	defer stop()
	return d.hashFiles(ctx, 1, func(int64) {})
}

// hashFiles hashes the files, limit at a time. It calls progress with the number of
// bytes read since the last call. If ctx ends, a read returns an error; hashFiles
// then waits for the other reads.
func (d *Dataset) hashFiles(ctx context.Context, limit int, progress func(bytes int64)) (Hash, error) {
	d.hashed.Lock()
	defer d.hashed.Unlock()
	if d.hashed.value != nil {
		progress(d.bytes())
		return *d.hashed.value, nil
	}
	var mu sync.Mutex
	out := Hash{Files: make([][sha256.Size]byte, len(d.files))}
	err := guard.Parallel(context.Background(), "arrowio", len(d.files), limit, func(i int) (err error) {
		out.Files[i], err = d.files[i].hash(ctx, func(bytes int64) {
			mu.Lock()
			defer mu.Unlock()
			progress(bytes)
		})
		return err
	})
	if err != nil {
		return Hash{}, err
	}
	whole := sha256.New()
	for _, sum := range out.Files {
		whole.Write(sum[:])
	}
	whole.Sum(out.Sum[:0])
	d.hashed.value = &out
	return out, nil
}

// hash hashes every byte of a file. It fails if the file has changed since it was
// opened.
func (f *file) hash(ctx context.Context, progress func(bytes int64)) (sum [sha256.Size]byte, err error) {
	h, buffer := sha256.New(), make([]byte, 1<<20)
	for off := int64(0); off < f.content.Size(); {
		b := buffer[:min(int64(len(buffer)), f.content.Size()-off)]
		if err := f.readFull(ctx, b, off); err != nil {
			return sum, err
		}
		h.Write(b)
		off += int64(len(b))
		progress(int64(len(b)))
	}
	h.Sum(sum[:0])
	return sum, f.content.Check()
}
