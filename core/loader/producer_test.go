package loader_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

const pause = 500 * time.Microsecond // between two quick steps, or for a slow gather

// resting returns a loader after its first batch. Two batches are in its queue, and
// its producer rests.
func resting(t *testing.T) (*loader.Loader, *readyQueue) {
	l, q := queued(t, loader.Options{Epochs: 1})
	want(t, l, q, 0)
	synctest.Wait()
	if q.offered() != 2 || !look(q, &q.resting) {
		t.Fatalf("%d batches in the queue, producer rests: %t, want 2 and true", q.offered(), q.resting)
	}
	return l, q
}

// inNoTime fails unless everything comes to rest after fn without time passing.
func inNoTime(t *testing.T, what string, fn func()) {
	t.Helper()
	began := time.Now()
	fn()
	synctest.Wait()
	if took := time.Since(began); took != 0 {
		t.Errorf("%s took %v, want no time", what, took)
	}
}

// A queue does not start the producer; a loader reads nothing before it is asked.
func TestQueueStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(100)
		_, q := queuedOver(t, src, loader.Options{})
		synctest.Wait()
		if n := src.Counts().Gathers; n != 0 || look(q, &q.expected) {
			t.Errorf("%d gathers before the first call, batch expected: %t, want none", n, q.expected)
		}
	})
}

// Between two quick steps the producer rests. After a second without a step it has
// ended, and the next call starts another.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := resting(t)
		for step := range int64(6) {
			time.Sleep(pause)
			if !look(q, &q.resting) {
				t.Fatalf("step %d: the producer does not rest between two steps", step)
			}
			want(t, l, q, step+1)
		}
		if n := look(q, &q.rests); n > 7 {
			t.Errorf("%d rests in 6 steps, want one for each", n)
		}
		time.Sleep(time.Second)
		if look(q, &q.resting) {
			t.Error("the producer rests a second after the last step")
		}
		for step := range int64(5) {
			want(t, l, q, step+7)
		}
	})
}

// After the producer has ended, the queue is empty. So the next caller calls Next,
// which starts another producer.
func TestQueueWithoutProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := queued(t, loader.Options{Epochs: 1, Prefetch: 3})
		for step := range int64(12) {
			time.Sleep(time.Second)
			if look(q, &q.resting) || q.offered() != 0 {
				t.Fatalf("step %d: %d batches in the queue after a second, want none", step, q.offered())
			}
			want(t, l, q, step)
			synctest.Wait()
			if step < 8 && q.offered() != 3 {
				t.Fatalf("step %d: %d batches in the queue between two steps, want 3", step, q.offered())
			}
		}
	})
}

// A rest counts as time with enough batches ready.
func TestRestIsProducerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := resting(t)
		time.Sleep(time.Second)
		want(t, l, q, 1)
		if s := l.Stats(); s.ProducerWait != time.Second {
			t.Errorf("the producer waited %v, want 1s", s.ProducerWait)
		}
	})
}

// After the last batch, and after the last epoch, the producer does not wait for
// the consumer.
func TestEndIsNoProducerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := resting(t)
		time.Sleep(time.Second)
		if err := l.Seek(batch.Cursor{Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := l.Stats(); s.ProducerWait != time.Second {
			t.Errorf("the producer waited %v, want 1s", s.ProducerWait)
		}
	})
}

// Callers wait in the queue for a batch that is being built, and this time counts.
func TestWaitInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(100)
		src.Hook = func(context.Context, []int64) error { time.Sleep(pause); return nil }
		l, q := queuedOver(t, src, loader.Options{Epochs: 1})
		for step := range int64(12) {
			if step == 1 {
				time.Sleep(3 * pause) // two batches are ready, and the producer rests
			}
			want(t, l, q, step)
		}
		if step, err := get(t, l, q); status.CodeOf(err) != status.End {
			t.Fatalf("got %v, want the end: %v", step, err)
		}
		if n := look(q, &q.taken); n < 8 { // the other batches start, wake or end the producer
			t.Errorf("%d of 12 batches were taken from the queue", n)
		}
		if got := l.Stats().ConsumerWait; got != 10*pause {
			t.Errorf("the callers waited %v, want %v", got, 10*pause)
		}
	})
}

// No caller waits in the queue at the end of a loop, even if the first batch of the next
// loop is being built. Nor does a caller wait without memory for a batch.
func TestNoWaitWithoutBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, steps := digits(100), 0
		src.Hook = func(context.Context, []int64) error {
			if steps++; steps > 12 {
				time.Sleep(pause)
			}
			return nil
		}
		l, q := queuedOver(t, src, loader.Options{})
		for step := range int64(12) {
			want(t, l, q, step)
		}
		synctest.Wait()
		inNoTime(t, "the end of a loop", func() {
			if step, err := get(t, l, q); status.CodeOf(err) != status.End {
				t.Fatalf("got %v, want the end: %v", step, err)
			}
		})

		l, q = queued(t, loader.Options{MaxHostBytes: 2 * 192, Allocator: batch.NewHeap(0)})
		first, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer first.Release()
		synctest.Wait()
		second, _ := q.take()
		inNoTime(t, "a call without memory", func() {
			_, err = get(t, l, q)
		})
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("got %v, want ResourceExhausted", err)
		}
		second.Memory().Free()
	})
}

// Every call that needs a batch, or moves the cursor, ends a rest at once.
func TestEndsOfRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := resting(t)
		inNoTime(t, "a caller of the queue", func() { want(t, l, q, 1) })
		if n := q.offered(); n != 2 {
			t.Errorf("%d batches in the queue after one was taken, want 2", n)
		}
		inNoTime(t, "Next", func() {
			for range 3 {
				next(t, l)
			}
		})
		inNoTime(t, "Seek", func() {
			if err := l.Seek(batch.Cursor{Position: 40}); err != nil {
				t.Fatal(err)
			}
		})
		if n := q.offered(); n != 2 {
			t.Errorf("%d batches in the queue after Seek, want 2", n)
		}
		inNoTime(t, "Close", func() { closeLoader(t, l) })
		if look(q, &q.resting) || q.closed != 1 {
			t.Errorf("after Close, the producer rests: %t, queue closed %d times", q.resting, q.closed)
		}
	})
}

// beforeRest is a queue that calls a function just before its first rest begins.
type beforeRest struct {
	*readyQueue
	call func()
}

func (q *beforeRest) Rest(taken int64, limit time.Duration) bool {
	if call := q.call; call != nil {
		q.call = nil
		call()
	}
	return q.readyQueue.Rest(taken, limit)
}

// A batch that is taken between the producer's decision to rest and its rest wakes
// the producer, even if State has counted the batch meanwhile.
func TestNoLostWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(t, digits(100), loader.Options{Layout: newLayout(t, document(8))})
		q := newReadyQueue(8)
		l.SetReadyQueue(&beforeRest{q, func() {
			b, _ := q.take()
			b.Memory().Free()
			if s := l.State(); s.Position != 16 {
				t.Errorf("position %d after two batches, want 16", s.Position)
			}
		}})
		inNoTime(t, "the batch after the one taken", func() { next(t, l) })
		if n := q.offered(); n != 2 {
			t.Errorf("%d batches in the queue, want 2", n)
		}
	})
}

// panicsWhenWoken is a queue. Its first Rest panics when it is woken.
type panicsWhenWoken struct{ *readyQueue }

func (s panicsWhenWoken) Rest(taken int64, limit time.Duration) bool {
	woken := s.readyQueue.Rest(taken, limit)
	if woken && look(s.readyQueue, &s.rests) == 1 {
		panic("the queue crashed")
	}
	return woken
}

const queuePanic = "loader: panic: the queue crashed; " +
	"this is a bug in meshfeed: please report it with the file and the options that led here"

// A panic of a rest is an error of the waiting caller. No batch is lost.
func TestPanicOfRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(t, digits(100), loader.Options{Layout: newLayout(t, document(8)), MaxHostBytes: 192})
		l.SetReadyQueue(panicsWhenWoken{newReadyQueue(8)})
		first, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it rests, because memory for another batch is lacking
		first.Release()
		_, err = l.Next(t.Context())
		wantError(t, err, status.Internal, queuePanic)
		if p := next(t, l); p.Index != 1 {
			t.Errorf("got step %d, want 1", p.Index)
		}
	})
}

// panicsWhenArmed is a queue. Its Expect panics once after armed is set.
type panicsWhenArmed struct {
	*readyQueue
	armed *atomic.Bool
}

func (f panicsWhenArmed) Expect(soon bool) {
	f.readyQueue.Expect(soon)
	if f.armed.Swap(false) {
		panic("the queue crashed")
	}
}

// A panic after a build is an error after the batch that was built. No batch is
// lost or delivered twice.
func TestPanicAfterBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Bool
		src := digits(96)
		src.Hook = func(_ context.Context, records []int64) error {
			if records[0] == 0 {
				armed.Store(true)
			}
			return nil
		}
		l, q := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Epochs: 1}), newReadyQueue(8)
		l.SetReadyQueue(panicsWhenArmed{q, &armed})
		want(t, l, q, 0)
		_, err := get(t, l, q)
		wantError(t, err, status.Internal, queuePanic)
		for step := int64(1); step < 12; step++ {
			if p := next(t, l); p.Index != step {
				t.Errorf("got step %d, want %d", p.Index, step)
			}
		}
	})
}

// Close during a gather waits for it. Then it closes the gatherer and the queue,
// each once, also if the gather outlasts Close.
func TestCloseDuringBuild(t *testing.T) {
	for name, late := range map[string]time.Duration{"soon": 0, "late": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			src := digits(96)
			src.Hook = func(context.Context, []int64) error { <-gate; return nil }
			l, q := queuedOver(t, src, loader.Options{})
			got, done := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := l.Next(context.Background())
				got <- err
			}()
			synctest.Wait()
			go func() { done <- l.Close() }()
			time.Sleep(late)
			synctest.Wait()
			wantError(t, <-got, status.Cancelled, "loader: the loader was closed while this call waited for a batch")
			if n := src.Counts().Gatherers; n != 1 || q.closed != 0 {
				t.Errorf("%s: %d gatherers are open during a gather, and the queue was closed %d times", name, n, q.closed)
			}
			close(gate)
			synctest.Wait()
			if n := src.Counts().Gatherers; n != 0 || q.closed != 1 {
				t.Errorf("%s: %d gatherers are open after Close, and the queue was closed %d times", name, n, q.closed)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A move during a gather drops its batch. The waiting caller gets the batch at the
// new cursor, and no two gathers run at a time.
func TestMoveDuringBuild(t *testing.T) {
	moves := map[string]func(l *loader.Loader) error{
		"Seek": func(l *loader.Loader) error { return l.Seek(batch.Cursor{Position: 40}) },
		"Skip": func(l *loader.Loader) error { return l.Skip(5) },
		"Restore": func(l *loader.Loader) error {
			s := l.State()
			s.Position = 40
			return l.Restore(s.JSON(), false)
		},
	}
	for name, move := range moves {
		synctest.Test(t, func(t *testing.T) {
			var gathers atomic.Int32
			src := digits(96)
			src.Hook = func(context.Context, []int64) error {
				if n := gathers.Add(1); n > 1 {
					t.Errorf("%s: %d gathers at a time", name, n)
				}
				time.Sleep(pause)
				gathers.Add(-1)
				return nil
			}
			l, q := queuedOver(t, src, loader.Options{})
			time.AfterFunc(pause/2, func() {
				if err := move(l); err != nil {
					t.Error(err)
				}
			})
			want(t, l, q, 5)
			want(t, l, q, 6)
		})
	}
}

// An idle loader has no goroutine: before the first call, while enough batches are
// ready, and after the end.
func TestIdleLoaderHasNoGoroutine(t *testing.T) {
	for _, withQueue := range []bool{false, true} {
		before := runtime.NumGoroutine()
		l := newLoader(t, digits(100), loader.Options{Layout: newLayout(t, document(8)), Epochs: 1})
		if withQueue {
			l.SetReadyQueue(newReadyQueue(8))
		}
		waitForGoroutines(t, before, "new")
		next(t, l)
		waitForGoroutines(t, before, "two batches are ready")
		loopSteps(t, l)
		waitForGoroutines(t, before, "at the end")
	}
}
