package loader_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// shelf is a loader.Shelf whose callers are in Go.
type shelf struct {
	mu       sync.Mutex
	changed  chan struct{} // closed with every change
	room     int
	lies     []*batch.Batch
	after    []loader.State
	expected bool
	taken    int // since the last Recall
	waited   time.Duration
	resting  bool
	woken    bool
	full     bool
	asked    bool // again, after it was full
	all      int
	rests    int
	closed   int
}

func newShelf(room int) *shelf { return &shelf{room: room, changed: make(chan struct{})} }

// change changes something, and tells those who wait.
func (s *shelf) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until fn says true, or for the limit; fn is called under the lock.
func (s *shelf) await(limit time.Duration, fn func() bool) bool {
	late := time.After(limit)
	for {
		s.mu.Lock()
		done, changed := fn(), s.changed
		s.mu.Unlock()
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

func (s *shelf) Offer(b *batch.Batch, after loader.State) bool {
	s.change(func() {
		s.asked = s.asked || s.full
		if s.full = len(s.lies) == s.room; !s.full {
			s.lies, s.after = append(s.lies, b), append(s.after, after)
		}
	})
	return !s.full
}

func (s *shelf) Expect(soon bool) { s.change(func() { s.expected = soon }) }

func (s *shelf) Recall() (taken int, waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, waited = s.taken, s.waited
	s.taken, s.waited, s.lies, s.after, s.full = 0, 0, nil, nil, false
	return taken, waited
}

func (s *shelf) Rest(limit time.Duration) (woken bool) {
	s.change(func() {
		s.rests++
		s.resting, s.woken = true, s.woken || s.taken > 0
	})
	defer s.change(func() { s.resting, s.woken = false, false })
	return s.await(limit, func() bool { return s.woken })
}

func (s *shelf) Wake() { s.change(func() { s.woken = true }) }

func (s *shelf) Close() { s.closed++ }

// take gives what lies first, after a wait if that is expected, or nil.
func (s *shelf) take() (b *batch.Batch, after loader.State) {
	began := time.Now()
	s.await(time.Hour, func() bool { return !s.expected || len(s.lies) > 0 })
	s.change(func() {
		s.waited += time.Since(began)
		if len(s.lies) == 0 {
			return
		}
		b, after = s.lies[0], s.after[0]
		s.lies, s.after = s.lies[1:], s.after[1:]
		s.taken++
		s.all++
		s.woken = s.woken || s.resting
	})
	return b, after
}

// jumped tells whether a batch was offered behind one that found no room.
func (s *shelf) jumped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// isExpected tells whether callers wait.
func (s *shelf) isExpected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expected
}

// lying gives how many batches lie there.
func (s *shelf) lying() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lies)
}

// rested gives how often the goroutine rested.
func (s *shelf) rested() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rests
}

// shelved gives a loader whose goroutine stays for a while, and its shelf.
func shelved(t *testing.T, o loader.Options) (*loader.Loader, *shelf) {
	return shelvedOver(t, digits(100), o)
}

func shelvedOver(t *testing.T, src source.Source, o loader.Options) (*loader.Loader, *shelf) {
	o.Layout = newLayout(t, document(8))
	l, s := newLoader(t, src, o), newShelf(8)
	l.Shelve(s)
	return l, s
}

// A failure is told in its place: what lies before it comes first.
func TestShelfBeforeAnError(t *testing.T) {
	src := digits(100)
	src.Hook = func(_ context.Context, records []int64) error {
		if records[0] == 24 {
			return status.New(status.DataLoss, "disk", "sector 7 is unreadable")
		}
		return nil
	}
	for range 50 {
		l, s := shelvedOver(t, src, loader.Options{Prefetch: 5})
		for step := range int64(3) {
			if place, err := get(t, l, s); err != nil || place.Step != step {
				t.Fatalf("got step %d, want %d: %v", place.Step, step, err)
			}
		}
		for range 2 {
			_, err := get(t, l, s)
			wantError(t, err, status.DataLoss, "loader: step 3 of epoch 0: disk: sector 7 is unreadable")
		}
	}
}

// get takes from the shelf, else from the loader, and checks every byte.
func get(t *testing.T, l *loader.Loader, s *shelf) (place batch.Place, err error) {
	t.Helper()
	b, after := s.take()
	if b == nil {
		if b, err = l.Next(t.Context()); err != nil {
			return place, err
		}
		after = l.StateAfter(b)
		if _, err := b.Take(); err != nil {
			t.Fatal(err)
		}
	}
	place = b.Place()
	if after.Cursor() != place.After {
		t.Fatalf("the state after the batch that ends at %v says %v", place.After, after.Cursor())
	}
	checkMemory(t, l, place, b.Memory())
	b.Memory().Free()
	return place, nil
}

func checkMemory(t *testing.T, l *loader.Loader, place batch.Place, m batch.Memory) {
	t.Helper()
	records, err := l.Records(place.Cursor)
	if err != nil {
		t.Fatal(err)
	}
	want := synthetic.Batch{Records: records, Epoch: place.Epoch}
	for i, block := range l.Layout().Process(l.Process()).Blocks {
		a := l.Layout().Arrays()[block.Array]
		if !bytes.Equal(m.Dst(i), synthetic.Expect(a, block.Index, want)) {
			t.Fatalf("epoch %d position %d: block %d (%s%v) is wrong", place.Epoch, place.Position, i, a.Name, block.Index)
		}
	}
}

// Whoever takes from the shelf sees what a caller of Next sees: the same
// batches, the same ends, the same state, counts and certificates.
func TestShelf(t *testing.T) {
	r := random.New(t)
	for round := range 60 {
		o := loader.Options{Shuffle: true, Epochs: round%4 - 1, Prefetch: 1 + round%5}
		src := digits(100)
		l, s := shelvedOver(t, src, o)
		s.room = 1 + r.IntN(8)
		o.Layout = l.Layout()
		plain := newLoader(t, digits(100), o)
		for range 120 {
			shelfStep(t, r, l, s, plain)
		}
		if round == 4 && s.all == 0 {
			t.Error("nothing was ever taken from the shelf")
		}
		if s.jumped() {
			t.Error("a batch was offered behind one for which there was no room")
		}
	}
}

// shelfStep does the same thing to both loaders, and compares.
func shelfStep(t *testing.T, r *rand.Rand, l *loader.Loader, s *shelf, plain *loader.Loader) {
	t.Helper()
	switch n := r.IntN(100); {
	case n < 80:
		place, err := get(t, l, s)
		b, want := plain.Next(t.Context())
		if status.CodeOf(err) != status.CodeOf(want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		if want == nil {
			if place != b.Place() {
				t.Fatalf("got the batch %v, want %v", place, b.Place())
			}
			b.Release()
		}
	case n < 85:
		time.Sleep(time.Duration(r.IntN(200)) * time.Microsecond)
	case n < 89:
		c := batch.Cursor{Epoch: int64(r.IntN(2)), Position: 8 * int64(6+r.IntN(6))} // often near the end
		if err, want := l.Seek(c), plain.Seek(c); status.CodeOf(err) != status.CodeOf(want) {
			t.Fatalf("Seek gave %v, want %v", err, want)
		}
	case n < 92:
		c := plain.State().Cursor()
		c.Position = max(0, c.Position-8*int64(r.IntN(3)))
		if err, want := l.Rewind(c), plain.Rewind(c); status.CodeOf(err) != status.CodeOf(want) {
			t.Fatalf("Rewind gave %v, want %v", err, want)
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

// The end of a loop is told by Next, also where the loop begins at its last
// batch and the first one of the next loop stands ready too.
func TestShelfAtTheEnd(t *testing.T) {
	l, s := shelved(t, loader.Options{})
	for range 50 {
		if err := l.Seek(batch.Cursor{Position: 88}); err != nil {
			t.Fatal(err)
		}
		for l.Stats().Queued < 2 {
			runtime.Gosched()
		}
		if place, err := get(t, l, s); err != nil || place.Step != 11 {
			t.Fatalf("got %v, want the last batch: %v", place, err)
		}
		if place, err := get(t, l, s); status.CodeOf(err) != status.End {
			t.Fatalf("got %v, want the end: %v", place, err)
		}
	}
}

// When the goroutine has gone nothing lies there, so that the next caller comes
// and starts it: whoever only took from the shelf would find it run empty.
func TestShelfWithoutTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := shelved(t, loader.Options{Epochs: 1, Prefetch: 3})
		for step := range int64(12) {
			time.Sleep(time.Second)
			if n := producers(); n != 0 || s.lying() != 0 {
				t.Fatalf("step %d: %d goroutines and %d batches on the shelf after a second, want none", step, n, s.lying())
			}
			if place, err := get(t, l, s); err != nil || place.Step != step {
				t.Fatalf("got %v, want step %d: %v", place, step, err)
			}
			synctest.Wait()
			if step < 8 && s.lying() != 3 {
				t.Fatalf("step %d: %d batches on the shelf between two steps, want 3", step, s.lying())
			}
		}
	})
}

// What was taken from the shelf is no batch of the loader's any more, also
// where the allocator counts nothing.
func TestShelfCounts(t *testing.T) {
	heap := batch.NewHeap(4)
	l, s := shelved(t, loader.Options{Epochs: 2, Prefetch: 3, Allocator: uncounted{heap}})
	for s.all < 6 {
		if _, err := get(t, l, s); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.Stats().LiveBatches; n > 3+1 {
		t.Errorf("%d batches live, want those that stand ready and one that is made at most", n)
	}
}

// uncounted is an allocator that does not say how much lives.
type uncounted struct{ heap *batch.Heap }

func (u uncounted) Alloc(blocks []batch.Block) (batch.Memory, error) { return u.heap.Alloc(blocks) }

// Many take at once, some from the shelf and some not: each batch goes to one.
func TestShelfOfMany(t *testing.T) {
	l, s := shelved(t, loader.Options{Epochs: 40, Prefetch: 4})
	var mu sync.Mutex
	seen := map[batch.Cursor]int{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				place, err := get(t, l, s)
				if err != nil {
					wantError(t, err, status.End, "loader: there is no further batch in this loop")
					return
				}
				mu.Lock()
				seen[place.Cursor]++
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

// The loader closes its shelf once, with nothing on it, also where it gets one
// too late.
func TestShelfIsClosed(t *testing.T) {
	l, s := shelved(t, loader.Options{})
	next(t, l)
	closeLoader(t, l)
	if err := l.Close(); err != nil || s.closed != 1 || len(s.lies) != 0 {
		t.Errorf("closed %d times, %d batches lie there: %v", s.closed, len(s.lies), err)
	}
	late := newShelf(8)
	l.Shelve(late)
	if late.closed != 1 {
		t.Errorf("a shelf that came too late was closed %d times", late.closed)
	}
	if _, err := l.Next(context.Background()); status.CodeOf(err) != status.InvalidState {
		t.Errorf("Next after Close gave %v", err)
	}
}
