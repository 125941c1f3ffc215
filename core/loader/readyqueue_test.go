package loader_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// readyQueue is a loader.ReadyQueue with goroutines as callers.
type readyQueue struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced by every change
	capacity int
	batches  []*batch.Batch
	after    []loader.State
	expected bool
	taken    int64
	waited   time.Duration
	resting  bool
	woken    bool
	full     bool // since the last Withdraw, or the last time that a batch was taken
	broken   bool // a batch was offered while full
	rests    int
	closed   int
}

func newReadyQueue(capacity int) *readyQueue {
	return &readyQueue{capacity: capacity, changed: make(chan struct{})}
}

// change calls fn under the lock and signals a change.
func (q *readyQueue) change(fn func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fn()
	close(q.changed)
	q.changed = make(chan struct{})
}

// await waits until fn, called under the lock, reports true. It reports false
// after the limit.
func (q *readyQueue) await(limit time.Duration, fn func() bool) bool {
	late := time.After(limit)
	for {
		q.mu.Lock()
		done, changed := fn(), q.changed
		q.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

func (q *readyQueue) Offer(b *batch.Batch, after loader.State) bool {
	q.change(func() {
		q.broken = q.broken || q.full
		if q.full = len(q.batches) == q.capacity; !q.full {
			q.batches, q.after = append(q.batches, b), append(q.after, after)
		}
	})
	return !q.full
}

func (q *readyQueue) Expect(soon bool) {
	q.change(func() {
		q.expected = soon
		q.full = false // the end of an attempt to offer
	})
}

func (q *readyQueue) Taken() (batches int64, waited time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken, q.waited
}

func (q *readyQueue) Withdraw() (batches int64, waited time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches, q.after = nil, nil
	return q.taken, q.waited
}

func (q *readyQueue) Rest(taken int64, limit time.Duration) bool {
	q.change(func() { q.rests++; q.resting = true })
	defer q.change(func() { q.resting, q.woken = false, false })
	return q.await(limit, func() bool { return q.woken || q.taken > taken })
}

func (q *readyQueue) Wake() { q.change(func() { q.woken = true }) }

func (q *readyQueue) Close() { q.closed++ }

// take returns the first batch. If the queue is empty, it waits as long as a batch is
// expected, then returns nil.
func (q *readyQueue) take() (b *batch.Batch, after loader.State) {
	began := time.Now()
	q.await(time.Hour, func() bool { return !q.expected || len(q.batches) > 0 })
	q.change(func() {
		q.waited += time.Since(began)
		if len(q.batches) == 0 {
			return
		}
		b, after = q.batches[0], q.after[0]
		q.batches, q.after = q.batches[1:], q.after[1:]
		q.taken++
	})
	return b, after
}

// look returns the value of a field that changes under the lock.
func look[T any](q *readyQueue, field *T) T {
	q.mu.Lock()
	defer q.mu.Unlock()
	return *field
}

// offered returns how many batches the queue holds.
func (q *readyQueue) offered() int { return len(look(q, &q.batches)) }

// queued returns a loader with a ready queue.
func queued(t *testing.T, o loader.Options) (*loader.Loader, *readyQueue) {
	return queuedOver(t, digits(100), o)
}

func queuedOver(t *testing.T, src source.Source, o loader.Options) (*loader.Loader, *readyQueue) {
	o.Layout = newLayout(t, document(8))
	l, q := newLoader(t, src, o), newReadyQueue(8)
	l.SetReadyQueue(q)
	return l, q
}

// get takes a batch from the queue, else from Next, and checks every byte.
func get(t *testing.T, l *loader.Loader, q *readyQueue) (step batch.Step, err error) {
	t.Helper()
	b, after := q.take()
	if b == nil {
		if b, err = l.Next(t.Context()); err != nil {
			return step, err
		}
		after = l.StateAfter(b)
		if _, err := b.Take(); err != nil {
			t.Fatal(err)
		}
	}
	step = b.Step()
	if after.Cursor() != step.After {
		t.Fatalf("the state after the batch that ends at %v says %v", step.After, after.Cursor())
	}
	checkMemory(t, l, step, b.Memory())
	b.Memory().Free()
	return step, nil
}

// want gets a batch, which must be of the given step.
func want(t *testing.T, l *loader.Loader, q *readyQueue, step int64) {
	t.Helper()
	if got, err := get(t, l, q); err != nil || got.Index != step {
		t.Fatalf("got %v, want step %d: %v", got, step, err)
	}
}

func checkMemory(t *testing.T, l *loader.Loader, step batch.Step, m batch.Memory) {
	t.Helper()
	records, err := l.Records(step.Cursor)
	if err != nil {
		t.Fatal(err)
	}
	want := synthetic.Batch{Records: records, Epoch: step.Epoch}
	for i, block := range l.Layout().Process(l.Process()).Blocks {
		a := l.Layout().Arrays()[block.Array]
		if !bytes.Equal(m.Dst(i), synthetic.Expect(a, block.Index, want)) {
			t.Fatalf("epoch %d position %d: block %d (%s%v) is wrong", step.Epoch, step.Position, i, a.Name, block.Index)
		}
	}
}

// A caller of the queue gets what a caller of Next gets: the same batches, ends of
// loops, states, counts and certificates.
func TestQueueDeliversLikeNext(t *testing.T) {
	r := random.New(t)
	for round := range 60 {
		o := loader.Options{Shuffle: true, Epochs: round%4 - 1, Prefetch: 1 + round%5}
		o.Layout = newLayout(t, document(8))
		l, plain := newLoader(t, digits(100), o), newLoader(t, digits(100), o)
		q := newReadyQueue(1 + r.IntN(8))
		l.SetReadyQueue(q)
		for range 120 {
			stepOfBoth(t, r, l, q, plain)
		}
		if round == 4 && look(q, &q.taken) == 0 {
			t.Error("no batch was taken from the queue")
		}
		if look(q, &q.broken) {
			t.Error("a batch was offered after one for which the queue had no room")
		}
	}
}

// stepOfBoth does the same with both loaders and compares the results.
func stepOfBoth(t *testing.T, r *rand.Rand, l *loader.Loader, q *readyQueue, plain *loader.Loader) {
	t.Helper()
	switch n := r.IntN(100); {
	case n < 80:
		step, err := get(t, l, q)
		b, want := plain.Next(t.Context())
		if status.CodeOf(err) != status.CodeOf(want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		if want == nil {
			if step != b.Step() {
				t.Fatalf("got the batch %v, want %v", step, b.Step())
			}
			b.Release()
		}
	case n < 85:
		time.Sleep(time.Duration(r.IntN(200)) * time.Microsecond) // lets the producer run
	case n < 89:
		c := batch.Cursor{Epoch: int64(r.IntN(2)), Position: 8 * int64(6+r.IntN(6))} // often near the end
		if err, want := l.Seek(c), plain.Seek(c); status.CodeOf(err) != status.CodeOf(want) {
			t.Fatalf("Seek returned %v, want %v", err, want)
		}
	case n < 92:
		c := plain.State().Cursor()
		c.Position = max(0, c.Position-8*int64(r.IntN(3)))
		if err, want := l.Rewind(c), plain.Rewind(c); status.CodeOf(err) != status.CodeOf(want) {
			t.Fatalf("Rewind returned %v, want %v", err, want)
		}
	case n < 95:
		steps := int64(r.IntN(3))
		if err, want := l.Skip(steps), plain.Skip(steps); status.CodeOf(err) != status.CodeOf(want) {
			t.Fatalf("Skip returned %v, want %v", err, want)
		}
	default:
		compare(t, l, plain)
	}
}

func compare(t *testing.T, l, plain *loader.Loader) {
	t.Helper()
	if got, want := l.State(), plain.State(); !bytes.Equal(got.JSON(), want.JSON()) {
		t.Fatalf("the state is %s, want %s", got.JSON(), want.JSON())
	}
	if got, want := l.Len(), plain.Len(); got != want {
		t.Fatalf("%d batches are left, want %d", got, want)
	}
	if got, want := l.Stats(), plain.Stats(); got.Batches != want.Batches || got.Rows != want.Rows || got.Bytes != want.Bytes {
		t.Fatalf("the counts are %+v, want %+v", got, want)
	}
	if got, want := certificateOf(t, l), certificateOf(t, plain); !got.Equal(want) {
		t.Fatalf("the certificate is %v, want %v", got, want)
	}
}

// The batches before an error are delivered first.
func TestQueueBeforeAnError(t *testing.T) {
	src := digits(100)
	src.Hook = func(_ context.Context, records []int64) error {
		if records[0] == 24 {
			return status.New(status.DataLoss, "disk", "sector 7 is unreadable")
		}
		return nil
	}
	for range 50 {
		l, q := queuedOver(t, src, loader.Options{Prefetch: 5})
		for step := range int64(3) {
			want(t, l, q, step)
		}
		for range 2 {
			_, err := get(t, l, q)
			wantError(t, err, status.DataLoss, "loader: step 3 of epoch 0: sector 7 is unreadable")
		}
	}
}

// Next, and not the queue, reports the end of a loop, even if the loop begins at its
// last batch. The first batch of the next loop is then ready.
func TestQueueAtTheEnd(t *testing.T) {
	l, q := queued(t, loader.Options{})
	for range 50 {
		if err := l.Seek(batch.Cursor{Position: 88}); err != nil {
			t.Fatal(err)
		}
		for l.Stats().Queued < 2 {
			runtime.Gosched()
		}
		want(t, l, q, 11)
		if step, err := get(t, l, q); status.CodeOf(err) != status.End {
			t.Fatalf("got %v, want the end: %v", step, err)
		}
	}
}

// A batch that was taken from the queue is not the loader's any more, even if the
// allocator counts nothing.
func TestQueueCounts(t *testing.T) {
	heap := batch.NewHeap(4)
	l, q := queued(t, loader.Options{Epochs: 2, Prefetch: 3, Allocator: uncounted{heap}})
	for look(q, &q.taken) < 6 {
		if _, err := get(t, l, q); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.Stats().LiveBatches; n > 3+1 {
		t.Errorf("%d batches live, want at most the ready ones and the one that is built", n)
	}
}

// uncounted is an allocator without batch.Counter.
type uncounted struct{ heap *batch.Heap }

func (u uncounted) Alloc(blocks []batch.Block) (batch.Memory, error) { return u.heap.Alloc(blocks) }

// If some concurrent callers use the queue and others call Next, each batch goes to one
// caller.
func TestQueueOfManyCallers(t *testing.T) {
	l, q := queued(t, loader.Options{Epochs: 40, Prefetch: 4})
	var mu sync.Mutex
	seen := map[batch.Cursor]int{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				step, err := get(t, l, q)
				if err != nil {
					wantError(t, err, status.End, "loader: there is no further batch in this loop")
					return
				}
				mu.Lock()
				seen[step.Cursor]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for c, n := range seen {
		if n != 1 {
			t.Errorf("the batch at %v was delivered %d times", c, n)
		}
	}
	if n := l.Stats().Batches; len(seen) != 40*12 || n != 40*12 {
		t.Errorf("%d batches, and %d counted, want 480", len(seen), n)
	}
}

// The loader closes its queue once, and the queue is then empty. A queue that comes
// after Close is closed at once.
func TestQueueIsClosed(t *testing.T) {
	l, q := queued(t, loader.Options{})
	next(t, l)
	closeLoader(t, l)
	if err := l.Close(); err != nil || q.closed != 1 || q.offered() != 0 {
		t.Errorf("closed %d times, %d batches in it: %v", q.closed, q.offered(), err)
	}
	late := newReadyQueue(8)
	l.SetReadyQueue(late)
	if late.closed != 1 {
		t.Errorf("a queue that came after Close was closed %d times", late.closed)
	}
	if _, err := l.Next(context.Background()); status.CodeOf(err) != status.InvalidState {
		t.Errorf("Next after Close returned %v", err)
	}
}
