package loader_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/loader"
)

const napTime = 50 * time.Microsecond

// napping gives options under which naps are counted.
func napping(t *testing.T, naps *atomic.Int64) loader.Options {
	return loader.Options{
		Layout: newLayout(t, document(8)), Epochs: 1,
		Nap: func() { naps.Add(1); time.Sleep(napTime) },
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
		time.Sleep(10 * napTime)
		if got := runtime.NumGoroutine() - before; got != 1 {
			t.Errorf("%d goroutines between two steps, want one that naps", got)
		}
		next(t, l)
		time.Sleep(time.Second)
		if got := runtime.NumGoroutine() - before; got != 0 {
			t.Errorf("%d goroutines a second after the last step, want none", got)
		}
		if n := naps.Load(); n < 40 || n > 60 {
			t.Errorf("%d naps, want the 10 of the pause and the 40 that end it", n)
		}
		for range 8 {
			next(t, l)
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
		if took := time.Since(began); took > napTime {
			t.Errorf("Close took %v, a nap %v", took, napTime)
		}
	})
}
