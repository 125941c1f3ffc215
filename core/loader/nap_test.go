package loader_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/loader"
)

const pause = 500 * time.Microsecond // between two quick steps

// napping gives options under which naps are counted.
func napping(t *testing.T, naps *atomic.Int64) loader.Options {
	return loader.Options{
		Layout: newLayout(t, document(8)), Epochs: 1,
		Nap: func(d time.Duration) { naps.Add(1); time.Sleep(d) },
	}
}

// Between two quick steps the goroutine naps and stays; after a while without
// a step it is gone, and the next call starts another.
func TestNap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var naps atomic.Int64
		l := newLoader(t, digits(80), napping(t, &naps))
		before := runtime.NumGoroutine()
		next(t, l)
		time.Sleep(pause)
		if got := runtime.NumGoroutine() - before; got != 1 {
			t.Errorf("%d goroutines between two steps, want one that naps", got)
		}
		next(t, l)
		time.Sleep(time.Second)
		if got := runtime.NumGoroutine() - before; got != 0 {
			t.Errorf("%d goroutines a second after the last step, want none", got)
		}
		if n := naps.Load(); n < 30 || n > 45 {
			t.Errorf("%d naps, want the 25 of the first pause and those that end the second", n)
		}
		for range 8 {
			next(t, l)
		}
	})
}

// In a steady loop a few naps pass the time between two steps.
func TestNapsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var naps atomic.Int64
		l := newLoader(t, digits(800), napping(t, &naps))
		const steps = 50
		for range steps {
			next(t, l)
			time.Sleep(pause)
		}
		if n := naps.Load(); n > 25+4*steps {
			t.Errorf("%d naps in %d steps, want 25 in the first and 4 in all others at most", n, steps)
		}
	})
}

// A nap counts as time in which enough stands ready.
func TestNapIsProducerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var naps atomic.Int64
		l := newLoader(t, digits(80), napping(t, &naps))
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
		var naps atomic.Int64
		l := newLoader(t, digits(80), napping(t, &naps))
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
