package resident

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
)

// fetching returns a file of 100 bytes, a fetcher of it that holds 20 bytes, and its reads.
func fetching(t *testing.T) (*File, []byte, *Fetcher, *blobtest.Far) {
	t.Helper()
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte(i)
	}
	far := &blobtest.Far{Opener: blobtest.Memory{"x": data}, Latency: time.Second, Suits: blob.Hints{Size: 10, AtOnce: 4, Ahead: 20}}
	b, err := far.Open(t.Context(), blob.Entry{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	calls := source.NewCalls("test", "file", func() error { return nil })
	life, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	reads := NewReads(far.Hints())
	return NewFile(b, reads), data, NewFetcher(life, calls, reads), far
}

// fives returns pieces of 5 bytes that cover the file.
func fives(f *File) (pieces []Piece) {
	for at := int64(0); at < f.Size(); at += 5 {
		pieces = append(pieces, Piece{f, Extent{at, 5}})
	}
	return pieces
}

// readFive reads piece i and compares it.
func readFive(t *testing.T, f *File, data []byte, i int) {
	t.Helper()
	p := make([]byte, 5)
	if err := f.ReadFull(t.Context(), p, int64(5*i)); err != nil || string(p) != string(data[5*i:5*i+5]) {
		t.Errorf("piece %d: %v, %v", i, p, err)
	}
}

// TestFetchInOrder: decoders that need pieces in the order of the plan find all of them read, two in
// each read.
func TestFetchInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, data, q, far := fetching(t)
		pieces := q.Fetch(fives(f))
		for i := range pieces {
			synctest.Wait()
			readFive(t, f, data, i)
			q.Release(pieces[i])
		}
		if reads := far.Take(); reads.Number != 10 || reads.Bytes != 100 || reads.AtOnce != 2 {
			t.Errorf("%+v", reads)
		}
		if q.bytes != 0 || len(q.begun)+len(q.queue) != 0 || f.held.list.Load() != nil {
			t.Errorf("%d bytes are held", q.bytes)
		}
	})
}

// TestFetchInAnyOrder: any order of reads and releases ends, with the bytes of the file. At most
// the bytes that the hints allow are held, with one read more for each decoder.
func TestFetchInAnyOrder(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			f, data, q, far := fetching(t)
			r := rand.New(rand.NewPCG(seed, 1))
			pieces := q.Fetch(fives(f))
			for _, i := range r.Perm(len(pieces)) {
				if r.IntN(4) > 0 {
					readFive(t, f, data, i)
				}
				if r.IntN(4) > 0 {
					q.Release(pieces[i])
				}
				q.mu.Lock()
				if q.bytes > 30 {
					t.Errorf("seed %d: %d bytes are held", seed, q.bytes)
				}
				q.mu.Unlock()
			}
			synctest.Wait()
			for i := range pieces {
				readFive(t, f, data, i)
			}
			if reads := far.Take(); reads.Number > 40 {
				t.Errorf("seed %d: %+v", seed, reads)
			}
		})
	}
}

// TestFetchEnds: after the file is closed, and after a read that fails, a decoder reads the file
// itself. A decoder does not wait after the end of its context.
func TestFetchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, data, q, _ := fetching(t)
		q.Fetch(fives(f))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := f.ReadAt(ctx, make([]byte, 5), 0); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		if err := q.calls.Close(time.Hour); err != nil {
			t.Error(err)
		}
		readFive(t, f, data, 19)
	})
}
