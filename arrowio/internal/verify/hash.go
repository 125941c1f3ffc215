package verify

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Hash returns the SHA-256 of every byte of each file. It reads at most limit files at a time,
// and calls progress with the number of bytes read since the last call. If ctx ends, a read
// returns an error; Hash then waits for the other reads. It fails if a file has changed since
// it was opened.
func Hash(ctx context.Context, files *units.Files, limit int, progress func(bytes int64)) ([][sha256.Size]byte, error) {
	var mu sync.Mutex
	sums := make([][sha256.Size]byte, len(files.List))
	err := guard.Parallel(context.Background(), "arrowio", len(files.List), limit, func(i int) (err error) {
		sums[i], err = hash(ctx, files.List[i], func(bytes int64) {
			mu.Lock()
			defer mu.Unlock()
			progress(bytes)
		})
		return err
	})
	return sums, err
}

func hash(ctx context.Context, f *units.File, progress func(bytes int64)) (sum [sha256.Size]byte, err error) {
	h, buffer, size := sha256.New(), make([]byte, 1<<20), f.Content.Size()
	for off := int64(0); off < size; {
		b := buffer[:min(int64(len(buffer)), size-off)]
		if err := f.ReadFull(ctx, b, off); err != nil {
			return sum, err
		}
		h.Write(b)
		off += int64(len(b))
		progress(int64(len(b)))
	}
	h.Sum(sum[:0])
	return sum, f.Content.Check()
}
