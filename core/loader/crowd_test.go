package loader_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/loader"
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
			takes(t, l, s, &m, 5)
			if n := producers(); n != 0 {
				t.Errorf("%d goroutines rest, which would be woken", n)
			}
			callers, goroutine := takes(t, l, s, &m, int(spared)-2)
			if callers < spared-4 || goroutine > 2 {
				t.Errorf("callers made %d batches and the goroutine %d, want %d of them left to callers", callers, goroutine, spared)
			}
		}
		takes(t, l, s, &m, 1)
		s.narrow = false
		takes(t, l, s, &m, 1024)
		if callers, goroutine := takes(t, l, s, &m, 100); callers != 0 || goroutine != 100 {
			t.Errorf("callers made %d batches and the goroutine %d where there is room for both, want none and 100", callers, goroutine)
		}
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
