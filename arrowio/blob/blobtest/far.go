package blobtest

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
)

// Far is an opener with slow reads, like the reads of a storage far away, and counts them. In a
// bubble of package testing/synctest the time passes at once. There, the time of a call divided by
// Latency is the number of its reads that wait for each other.
type Far struct {
	blob.Opener
	Latency time.Duration // time of each read
	Suits   blob.Hints

	mu    sync.Mutex
	now   int // reads in progress
	count Reads
}

// Reads counts reads.
type Reads struct {
	Number, AtOnce int // AtOnce is the most in progress
	Bytes          int64
}

// Hints implements blob.Opener.
func (f *Far) Hints() blob.Hints { return f.Suits }

// Open implements blob.Opener.
func (f *Far) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	b, err := f.Opener.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return farBlob{b, f}, nil
}

// Take returns the counts since its last call.
func (f *Far) Take() Reads {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := f.count
	f.count = Reads{}
	return count
}

// begin counts a read that begins, and end one that ends.
func (f *Far) begin(bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now++
	f.count.Number++
	f.count.AtOnce = max(f.count.AtOnce, f.now)
	f.count.Bytes += int64(bytes)
}

func (f *Far) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
}

// farBlob is a blob of a Far. Its content never changes.
type farBlob struct {
	blob.Blob
	far *Far
}

// Version implements blob.Versioned.
func (b farBlob) Version() string { return b.Name() }

// ReadAt implements blob.Blob.
func (b farBlob) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	b.far.begin(len(p))
	defer b.far.end()
	select {
	case <-time.After(b.far.Latency):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return b.Blob.ReadAt(ctx, p, offset)
}
