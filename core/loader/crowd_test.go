package loader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// takes gets batches, between which everything comes to rest, and gives who made
// how many.
func takes(t *testing.T, l *loader.Loader, s *shelf, m *makers, n int) (callers, goroutine int64) {
	t.Helper()
	for range n {
		if _, err := get(t, l, s); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	return m.callers.Swap(0), m.goroutine.Swap(0)
}

// Where waking the goroutine stops who wakes it, callers make batches, for twice
// as many every time that it is still so; and where it no longer does, everything
// is read ahead again.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m makers
		src := inMemory(96)
		src.Hook = m.hook
		l, s := shelvedOver(t, src, loader.Options{Epochs: -1})
		takes(t, l, s, &m, 1)
		s.narrow = true
		if callers, goroutine := takes(t, l, s, &m, 15); callers != 0 || goroutine != 15 {
			t.Errorf("callers made %d batches and the goroutine %d of the first 15, want none and all", callers, goroutine)
		}
		time.Sleep(time.Second) // a rest that nobody ends is no wake
		takes(t, l, s, &m, 4)
		for _, spared := range []int64{64, 128, 256, 512, 1024, 1024} {
			var callers, goroutine int64
			for n := int64(0); goroutine == 0 && n < 2*spared; n++ {
				if n == 5 && producers() != 0 {
					t.Errorf("%d goroutines rest, which would be woken", producers())
				}
				var more int64
				more, goroutine = takes(t, l, s, &m, 1)
				callers += more
			}
			if callers < spared-4 || callers > spared+1 || goroutine == 0 || goroutine > 2 {
				t.Errorf("callers made %d batches before the goroutine made %d, want %d left to callers", callers, goroutine, spared)
			}
		}
		takes(t, l, s, &m, 1)
		s.narrow = false
		takes(t, l, s, &m, 1030) // those that are still left to callers
		if callers, goroutine := takes(t, l, s, &m, 100); callers != 0 || goroutine != 100 {
			t.Errorf("callers made %d batches and the goroutine %d where there is room for both, want none and 100", callers, goroutine)
		}
	})
}

// crowded gives a loader whose batches are left to callers, and its shelf.
func crowded(t *testing.T, src *synthetic.Source, o loader.Options) (*loader.Loader, *shelf) {
	l, s := shelvedOver(t, src, o)
	s.narrow = true
	takes(t, l, s, new(makers), 20)
	for s.lying() > 0 {
		takes(t, l, s, new(makers), 1)
	}
	return l, s
}

// place gives the step of the next batch, counted from the beginning.
func place(l *loader.Loader) int64 { return 12*l.Epoch() + l.Step() }

// Who finds nothing where batches are left to callers makes those, too, that may
// stand ready, and others find them on the shelf.
func TestCrowdAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m makers
		src := inMemory(96)
		l, s := crowded(t, src, loader.Options{Epochs: -1})
		src.Hook = m.hook
		for range 10 {
			at, lay := place(l), s.all
			if takes(t, l, s, &m, 1); s.lying() != 2 {
				t.Errorf("%d batches lie on the shelf behind step %d, want 2", s.lying(), at)
			}
			if callers, goroutine := takes(t, l, s, &m, 2); callers != 0 || goroutine != 0 || s.all != lay+2 {
				t.Errorf("callers made %d batches and the goroutine %d behind step %d, want none", callers, goroutine, at)
			}
			if n := place(l); n != at+3 {
				t.Errorf("the next step is %d behind three from %d", n, at)
			}
		}
		if n := producers(); n != 0 {
			t.Errorf("%d goroutines read ahead", n)
		}
	})
}

// Of those batches no more are made than there is memory for.
func TestCrowdWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := crowded(t, inMemory(96), loader.Options{Epochs: -1, MaxHostBytes: 2 * 192, Allocator: batch.NewHeap(0)})
		for range 10 {
			if takes(t, l, s, new(makers), 1); s.lying() != 1 {
				t.Errorf("%d batches lie on the shelf beside one that was held, want 1", s.lying())
			}
			takes(t, l, s, new(makers), 1)
		}
	})
}

// A failure in one of them is told in its place, and tried again.
func TestCrowdFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := inMemory(96)
		l, s := crowded(t, src, loader.Options{Epochs: -1})
		at, made := place(l), 0
		src.Hook = func(context.Context, []int64) error {
			if made++; made == 2 {
				return status.New(status.IO, "test", "the second one is broken")
			}
			return nil
		}
		want(t, l, s, at%12)
		if n := s.lying(); n != 0 {
			t.Errorf("%d batches lie on the shelf before a failure", n)
		}
		_, err := get(t, l, s)
		if status.CodeOf(err) != status.IO {
			t.Errorf("got %v behind step %d, want what the second gather said", err, at)
		}
		want(t, l, s, (at+1)%12)
		want(t, l, s, (at+2)%12)
	})
}

// A call that is cancelled makes none of them behind the one that it waited for.
func TestCancelDuringCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := inMemory(96)
		l, s := crowded(t, src, loader.Options{Epochs: -1})
		ctx, cancel := context.WithCancel(t.Context())
		at, made := place(l), 0
		src.Hook = func(context.Context, []int64) error {
			made++
			cancel()
			return nil
		}
		if b, err := l.Next(ctx); err == nil {
			b.Release()
		} else if status.CodeOf(err) != status.Cancelled {
			t.Error(err)
		}
		if made != 1 || s.lying() > 1 {
			t.Errorf("%d batches were made, and %d lie on the shelf, want 1, and that one at most", made, s.lying())
		}
		src.Hook = nil
		want(t, l, s, place(l)%12)
		if n := place(l); n > at+2 {
			t.Errorf("the next step is %d behind one or two from %d", n, at)
		}
	})
}

// Close during one of them waits for it, and the caller has his batch.
func TestCloseDuringCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := inMemory(96)
		l, s := crowded(t, src, loader.Options{Epochs: -1})
		gate, made := make(chan struct{}), 0
		src.Hook = func(context.Context, []int64) error {
			if made++; made == 2 {
				<-gate
			}
			return nil
		}
		got, done := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := get(t, l, s)
			got <- err
		}()
		synctest.Wait()
		go func() { done <- l.Close() }()
		synctest.Wait()
		if n := src.Counts().Gatherers; n != 1 {
			t.Errorf("%d gatherers are open during a gather", n)
		}
		close(gate)
		if err := <-got; err != nil {
			t.Errorf("the caller whose batch was made got %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := src.Counts().Gatherers; n != 0 || made != 2 {
			t.Errorf("%d gatherers are open after Close, and %d batches were made, want none and 2", n, made)
		}
		closeLoader(t, l)
	})
}

// What is not small, or not in memory, is read ahead everywhere.
func TestNoCrowd(t *testing.T) {
	for name, c := range map[string]struct {
		batch  int
		memory bool
	}{"large": {16384, true}, "disk": {8, false}} {
		synctest.Test(t, func(t *testing.T) {
			var m makers
			src := digits(2 * int64(c.batch))
			src.InMemory, src.Hook = c.memory, m.hook
			l, s := newLoader(t, src, loader.Options{Layout: newLayout(t, document(c.batch)), Epochs: -1}), newShelf(8)
			s.narrow = true
			l.Shelve(s)
			takes(t, l, s, &m, 20)
			if callers, goroutine := takes(t, l, s, &m, 100); callers != 0 || goroutine != 100 {
				t.Errorf("%s: callers made %d batches and the goroutine %d, want none and 100", name, callers, goroutine)
			}
			if n := s.lying(); n != 2 {
				t.Errorf("%s: %d batches are read ahead, want 2", name, n)
			}
		})
	}
}
