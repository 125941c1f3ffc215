package loader_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/loader"
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

// napper counts naps, and how often it was woken.
type napper struct {
	naps, wakes atomic.Int64
	woken       chan struct{}
}

func (n *napper) Nap(d time.Duration) {
	n.naps.Add(1)
	select {
	case <-n.woken:
	case <-time.After(d):
	}
}

func (n *napper) Wake() {
	n.wakes.Add(1)
	select {
	case n.woken <- struct{}{}:
	default:
	}
}

// napping gives options of a loader whose only pass naps with n.
func napping(t *testing.T, n *napper) loader.Options {
	n.woken = make(chan struct{}, 1)
	return loader.Options{Layout: newLayout(t, document(8)), Epochs: 1, Napper: func() loader.Napper { return n }}
}

// Between two quick steps the goroutine naps and stays; after a while without
// a step it is gone, and the next call starts another.
func TestNap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n napper
		l := newLoader(t, digits(80), napping(t, &n))
		next(t, l)
		time.Sleep(pause)
		if got := producers(); got != 1 {
			t.Errorf("%d goroutines between two steps, want one that naps", got)
		}
		next(t, l)
		time.Sleep(time.Second)
		if got := producers(); got != 0 {
			t.Errorf("%d goroutines a second after the last step, want none", got)
		}
		if naps := n.naps.Load(); naps < 30 || naps > 45 {
			t.Errorf("%d naps, want the 25 of the first pause and those that end the second", naps)
		}
		for range 8 {
			next(t, l)
		}
	})
}

// In a steady loop a few naps pass the time between two steps.
func TestNapsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n napper
		l := newLoader(t, digits(800), napping(t, &n))
		const steps = 50
		for range steps {
			next(t, l)
			time.Sleep(pause)
		}
		if naps := n.naps.Load(); naps > 25+4*steps {
			t.Errorf("%d naps in %d steps, want 25 in the first and 4 in all others at most", naps, steps)
		}
	})
}

// A nap counts as time in which enough stands ready.
func TestNapIsProducerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n napper
		l := newLoader(t, digits(80), napping(t, &n))
		next(t, l)
		time.Sleep(time.Second)
		next(t, l)
		if s := l.Stats(); s.ProducerWait != time.Second {
			t.Errorf("the loader waited %v, want 1s", s.ProducerWait)
		}
	})
}

// Close does not wait for more than the nap that goes on.
func TestCloseDuringNap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n napper
		l := newLoader(t, digits(80), napping(t, &n))
		next(t, l)
		synctest.Wait()
		began := time.Now()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > pause {
			t.Errorf("Close took %v, naps are no longer than %v", took, pause)
		}
	})
}

// Who finds a batch lets the goroutine nap; who finds none wakes it, once.
func TestWaitEndsNap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n napper
		l := newLoader(t, digits(80), napping(t, &n))
		next(t, l)
		synctest.Wait() // two stand ready, and it naps
		next(t, l)
		next(t, l)
		if got := n.wakes.Load(); got != 0 {
			t.Errorf("woken %d times by callers who found a batch", got)
		}
		began := time.Now()
		next(t, l)
		if took := time.Since(began); took != 0 {
			t.Errorf("a caller who found nothing waited %v for the end of a nap", took)
		}
		if got := n.wakes.Load(); got != 1 {
			t.Errorf("woken %d times by one caller who found nothing", got)
		}
	})
}
