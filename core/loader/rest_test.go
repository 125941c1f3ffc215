package loader_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

// producers counts the goroutines of this test's loaders that make batches.
// Those of tests before it, which may not be gone yet, are in no bubble.
func producers() int {
	stacks := make([]byte, 1<<20)
	count := 0
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "synctest bubble") && strings.Contains(stack, "(*prefetch).produce") {
			count++
		}
	}
	return count
}

const pause = 500 * time.Microsecond // between two quick steps

// resting gives a loader of which two batches lie on the shelf and whose
// goroutine rests.
func resting(t *testing.T) (*loader.Loader, *shelf) {
	l, s := shelved(t, loader.Options{Epochs: 1})
	if _, err := get(t, l, s); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if s.lying() != 2 || producers() != 1 {
		t.Fatalf("%d batches lie on the shelf and %d goroutines make them, want 2 and 1", s.lying(), producers())
	}
	return l, s
}

// untimely fails unless fn gets through without any time passing.
func untimely(t *testing.T, what string, fn func()) {
	t.Helper()
	began := time.Now()
	fn()
	synctest.Wait()
	if took := time.Since(began); took != 0 {
		t.Errorf("%s waited %v for the end of a rest", what, took)
	}
}

// Between two quick steps the goroutine rests and stays; after a while without
// a step it is gone, and the next call starts another.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := resting(t)
		for step := range int64(6) {
			time.Sleep(pause)
			if got := producers(); got != 1 {
				t.Fatalf("step %d: %d goroutines between two steps, want one that rests", step, got)
			}
			if _, err := get(t, l, s); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.rested(); got > 7 {
			t.Errorf("%d rests in 6 steps, want one for each", got)
		}
		time.Sleep(time.Second)
		if got := producers(); got != 0 {
			t.Errorf("%d goroutines a second after the last step, want none", got)
		}
		for range 5 {
			if _, err := get(t, l, s); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A rest counts as time in which enough stands ready.
func TestRestIsProducerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := resting(t)
		time.Sleep(time.Second)
		if _, err := get(t, l, s); err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); s.ProducerWait != time.Second {
			t.Errorf("the loader waited %v, want 1s", s.ProducerWait)
		}
	})
}

// Callers wait at the shelf for a batch that is being made, and their wait
// counts.
func TestWaitAtTheShelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(100)
		src.Hook = func(context.Context, []int64) error { time.Sleep(pause); return nil }
		l, s := shelvedOver(t, src, loader.Options{Epochs: 1})
		for step := range int64(12) {
			if step == 1 {
				time.Sleep(3 * pause) // two stand ready, and it rests
			}
			if place, err := get(t, l, s); err != nil || place.Step != step {
				t.Fatalf("got %v, want step %d: %v", place, step, err)
			}
		}
		if place, err := get(t, l, s); status.CodeOf(err) != status.End {
			t.Fatalf("got %v, want the end: %v", place, err)
		}
		if s.all < 8 { // all but one before which the goroutine starts, comes back from its rest or ends
			t.Errorf("%d of 12 batches were taken from the shelf", s.all)
		}
		if got := l.Stats().ConsumerWait; got != 10*pause {
			t.Errorf("the callers waited %v, want %v", got, 10*pause)
		}
	})
}

// Nobody waits at the shelf for what does not come: behind the end of a loop,
// also while the next loop's first batch is made, and where no memory is left.
func TestNoWaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, steps := digits(100), 0
		src.Hook = func(context.Context, []int64) error {
			if steps++; steps > 12 {
				time.Sleep(pause)
			}
			return nil
		}
		l, s := shelvedOver(t, src, loader.Options{})
		for range 12 {
			if _, err := get(t, l, s); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		untimely(t, "the end", func() {
			if place, err := get(t, l, s); status.CodeOf(err) != status.End {
				t.Fatalf("got %v, want the end: %v", place, err)
			}
		})

		l, s = shelved(t, loader.Options{MaxHostBytes: 2 * 192, Allocator: batch.NewHeap(0)})
		first, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer first.Release()
		synctest.Wait()
		second, _ := s.take()
		untimely(t, "a caller for whom there is no memory", func() {
			_, err = get(t, l, s)
		})
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("got %v, want no memory", err)
		}
		second.Memory().Free()
	})
}

// startled is a shelf whose first rest panics when it is woken.
type startled struct{ *shelf }

func (s startled) Rest(limit time.Duration) (woken bool) {
	woken = s.shelf.Rest(limit)
	if woken && s.rested() == 1 {
		panic("the shelf fell down")
	}
	return woken
}

// A panic of the loader itself is told to who waits, and loses nothing.
func TestRestBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(t, digits(100), loader.Options{Layout: newLayout(t, document(8)), MaxHostBytes: 192})
		l.Shelve(startled{newShelf(8)})
		first, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it rests: there is no memory for another
		first.Release()
		_, err = l.Next(t.Context())
		wantError(t, err, status.Internal, "loader: panic: the shelf fell down; "+
			"this is a bug in meshfeed: please report it with the file and the options that led here")
		if p := next(t, l); p.Step != 1 {
			t.Errorf("step %d came, want 1", p.Step)
		}
	})
}

// Whoever makes room, or has to wait, ends the rest at once.
func TestEndsOfRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := resting(t)
		untimely(t, "a caller at the shelf", func() {
			if _, err := get(t, l, s); err != nil {
				t.Fatal(err)
			}
		})
		if got := s.lying(); got != 2 {
			t.Errorf("%d batches lie there after one was taken, want 2 again", got)
		}
		untimely(t, "Next", func() {
			for range 3 {
				next(t, l)
			}
		})
		untimely(t, "Seek", func() {
			if err := l.Seek(batch.Cursor{Position: 40}); err != nil {
				t.Fatal(err)
			}
		})
		if got := s.lying(); got != 2 {
			t.Errorf("%d batches lie there after Seek, want 2", got)
		}
		untimely(t, "Close", func() { closeLoader(t, l) })
		if got := producers(); got != 0 {
			t.Errorf("%d goroutines after Close, want none", got)
		}
	})
}
