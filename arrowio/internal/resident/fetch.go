package resident

import (
	"context"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Fetcher reads pieces of files before they are decoded. It has up to AtOnce reads in progress,
// whatever the number of decoders, and holds up to Ahead bytes. If a decoder needs a piece that still
// waits for its turn, the piece is read at once. So a fetcher changes when bytes are read, but never
// which bytes a decoder gets.
type Fetcher struct {
	reads *Reads
	calls *source.Calls // so that files stay open during a read
	life  context.Context

	mu      sync.Mutex
	queue   []*fetched // not begun
	begun   []*fetched // in the order of their begin, without dropped ones
	bytes   int64      // bytes of begun
	running int        // reads in progress, without the reads of decoders
}

// fetched is a read of several pieces.
type fetched struct {
	held
	file  *File
	users int           // pieces that are not released
	done  chan struct{} // closed when the read has ended or was dropped before its begin
}

// Fetched is a piece that a fetcher reads.
type Fetched struct{ from *fetched }

// NewFetcher returns a fetcher. Its reads end with the context.
func NewFetcher(life context.Context, calls *source.Calls, r *Reads) *Fetcher {
	return &Fetcher{reads: r, calls: calls, life: life}
}

// Fetch begins to read pieces, and returns at once. Until a piece is released, reads within it take
// its bytes from memory.
func (q *Fetcher) Fetch(pieces []Piece) []Fetched {
	out := make([]Fetched, len(pieces))
	var more []*fetched
	for _, p := range q.reads.plan(pieces, q.reads.Gap) {
		s := &fetched{held: held{Extent: p.Extent}, file: p.file, users: len(p.pieces), done: make(chan struct{})}
		s.wait = func(ctx context.Context) error { return q.wait(ctx, s) }
		s.file.held.add(&s.held)
		for _, i := range p.pieces {
			out[i] = Fetched{s}
		}
		more = append(more, s)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, more...)
	q.work()
	return out
}

// Release ends the use of a piece. Its bytes are dropped when no other piece of the same read is in
// use.
func (q *Fetcher) Release(p Fetched) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.from.users--; p.from.users == 0 {
		q.drop(p.from)
		q.work()
	}
}

// drop forgets a read. The caller holds the lock.
func (q *Fetcher) drop(s *fetched) {
	s.file.held.remove(&s.held)
	if i := slices.Index(q.queue, s); i >= 0 {
		q.queue = slices.Delete(q.queue, i, i+1)
		close(s.done) // a decoder may have found it
	}
	if i := slices.Index(q.begun, s); i >= 0 {
		q.begun = slices.Delete(q.begun, i, i+1)
		q.bytes -= s.Length
	}
}

// work begins reads while there is room. The caller holds the lock.
func (q *Fetcher) work() {
	for len(q.queue) > 0 && q.running < q.reads.AtOnce && q.bytes < q.reads.Ahead {
		s := q.begin(0)
		q.running++
		guard.Go("arrowio", func() error {
			q.read(s)
			q.mu.Lock()
			defer q.mu.Unlock()
			q.running--
			q.work()
			return nil
		}, nil)
	}
}

// begin removes a read from the queue. The caller holds the lock, and calls read.
func (q *Fetcher) begin(i int) *fetched {
	s := q.queue[i]
	q.queue = slices.Delete(q.queue, i, i+1)
	q.begun = append(q.begun, s)
	q.bytes += s.Length
	return s
}

// read reads the bytes. An error leaves the data nil.
func (q *Fetcher) read(s *fetched) {
	defer close(s.done)
	if q.calls.Enter() != nil {
		return
	}
	defer q.calls.Leave()
	_ = guard.Call("arrowio", func() error {
		data, err := q.reads.read(q.life, s.file, s.Extent)
		if err == nil {
			s.data = data
		}
		return err
	})
}

// wait waits for the end of a read. If its turn has not come, the read begins now.
func (q *Fetcher) wait(ctx context.Context, s *fetched) error {
	q.hurry(s)
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hurry begins a read that still waits for its turn. If too much is held already, decoders do not need
// that now: the oldest reads are dropped, and are repeated when needed.
func (q *Fetcher) hurry(s *fetched) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.queue, s)
	if i < 0 {
		return
	}
	q.begin(i)
	for k := 0; k < len(q.begun) && q.bytes > q.reads.Ahead; {
		if old := q.begun[k]; old != s && old.over() {
			q.drop(old)
		} else {
			k++
		}
	}
	guard.Go("arrowio", func() error { q.read(s); return nil }, nil)
}

// over reports whether the read has ended.
func (s *fetched) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
