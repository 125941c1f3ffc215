package loader_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

// A batch is built, for a second, while the one before it is used, for a second.
func TestOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = func(context.Context, []int64) error { time.Sleep(time.Second); return nil }
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Epochs: 1})
		began := time.Now()
		for range 10 {
			next(t, l)
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took != 11*time.Second {
			t.Errorf("ten batches took %v, want 11s", took)
		}
		s := l.Stats()
		if s.Gather != 10*time.Second || s.Build != s.Gather || s.ConsumerWait != time.Second || s.ProducerWait != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// aSecond is a gather that takes a second, unless it is canceled.
func aSecond(ctx context.Context, _ []int64) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}

// The producer waits for four seconds, then the consumer for one.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = aSecond
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Prefetch: 1})
		next(t, l)                  // built in the first second; the second batch in the next
		time.Sleep(5 * time.Second) // so that the producer waits for four
		next(t, l)
		next(t, l)
		if s := l.Stats(); s.ProducerWait != 4*time.Second || s.ConsumerWait != 2*time.Second {
			t.Errorf("the producer waited %v, the consumer %v, want 4s and 2s", s.ProducerWait, s.ConsumerWait)
		}
	})
}

// At most prefetch batches are ready, and then none is built.
func TestBound(t *testing.T) {
	for _, c := range []struct{ prefetch, ready int }{{-1, 0}, {1, 1}, {3, 3}} {
		t.Run(fmt.Sprint(c.prefetch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := digits(800)
				l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Prefetch: c.prefetch})
				for range 4 {
					next(t, l)
					synctest.Wait()
					if s := l.Stats(); s.Queued != int64(c.ready) || s.LiveBatches != int64(c.ready) {
						t.Errorf("%d are ready, %d live, want %d", s.Queued, s.LiveBatches, c.ready)
					}
				}
				time.Sleep(5 * time.Second)
				if s := l.Stats(); c.ready > 0 && s.ProducerWait != 5*time.Second {
					t.Errorf("the producer waited %v, want 5s", s.ProducerWait)
				}
				if n := src.Counts().Gathers; n != 4+c.ready {
					t.Errorf("%d gathers, want %d", n, 4+c.ready)
				}
			})
		})
	}
}

// A consumer that keeps every batch never waits for a release.
func TestNeverWaitsForRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(t, digits(400), loader.Options{Layout: newLayout(t, document(8)), Epochs: 1})
		var kept []*batch.Batch
		for b, err := range l.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, b)
		}
		if s := l.Stats(); s.LiveBatches != 50 {
			t.Errorf("%d batches live, want 50", s.LiveBatches)
		}
		for _, b := range kept {
			checkBytes(t, l, b) // later batches have not changed it
			b.Release()
		}
	})
}

// Memory is reused: a steady loop needs the memory of the ready batches, the batch in
// use and the one being built.
func TestMemoryIsReused(t *testing.T) {
	l := newLoader(t, digits(800), loader.Options{Layout: newLayout(t, document(8)), Prefetch: 3, Epochs: 1})
	slabs := map[*byte]bool{}
	for b, err := range l.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		slabs[unsafe.SliceData(b.Memory().Dst(0))] = true
		b.Release()
	}
	if len(slabs) > 3+2 {
		t.Errorf("100 batches in %d slabs, want at most 5", len(slabs))
	}
}

func TestCancelLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = func(context.Context, []int64) error { time.Sleep(time.Second); return nil }
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Epochs: 1})

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		_, err := l.Next(ctx)
		wantError(t, err, status.Cancelled, "loader: the wait for a batch was cancelled: context canceled")
		if !errors.Is(err, context.Canceled) {
			t.Error("the error does not wrap context.Canceled")
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second/4)
		defer cancel()
		_, err = l.Next(ctx)
		wantError(t, err, status.Timeout, "loader: no batch was ready in time: context deadline exceeded; ask again: nothing is lost")

		time.Sleep(time.Second)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Next(over); status.CodeOf(err) != status.Cancelled { // though a batch is ready
			t.Errorf("got %v", err)
		}
		if b, err := l.Next(ctx); err != nil { // the deadline has passed, but a batch is ready
			t.Error(err)
		} else {
			b.Release()
		}
		for step := int64(1); step < 10; step++ {
			if p := next(t, l); p.Index != step {
				t.Errorf("got step %d, want %d", p.Index, step)
			}
		}
	})
}

func TestCloseEndsCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = func(ctx context.Context, _ []int64) error { <-ctx.Done(); return ctx.Err() }
		l, err := loader.New(src, loader.Options{Layout: newLayout(t, document(8))})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { closeLoader(t, l) })
		_, err = l.Next(t.Context())
		wantError(t, err, status.Cancelled, "loader: the loader was closed while this call waited for a batch")
		synctest.Wait()
		_, err = l.Next(t.Context())
		wantError(t, err, status.InvalidState, "loader: the loader is closed")
		wantError(t, l.Seek(batch.Cursor{}), status.InvalidState, "loader: the loader is closed")
		wantError(t, l.Restore(l.State().JSON(), false), status.InvalidState, "loader: the loader is closed")
		if src.Counts().Gatherers != 0 {
			t.Error("the gatherer is open")
		}
		closeLoader(t, l)
	})
}

// If a disk does not answer a read, Close waits for a second. The read closes the
// gatherer when it ends.
func TestCloseDuringHungRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = func(context.Context, []int64) error { time.Sleep(5 * time.Second); return nil }
		l, err := loader.New(src, loader.Options{Layout: newLayout(t, document(8))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Next(ctx); status.CodeOf(err) != status.Timeout {
			t.Fatal(err)
		}
		began := time.Now()
		if err := l.Close(); err != nil || time.Since(began) != time.Second {
			t.Errorf("Close took %v: %v", time.Since(began), err)
		}
		time.Sleep(4 * time.Second)
		closeLoader(t, l)
		if src.Counts().Gatherers != 0 {
			t.Error("the gatherer is open")
		}
	})
}

// Seek during a gather drops its batch. The waiting call gets the batch at the new
// cursor.
func TestSeekWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = aSecond
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8))})
		time.AfterFunc(time.Second/2, func() {
			if err := l.Seek(batch.Cursor{Epoch: 3, Position: 16}); err != nil {
				t.Error(err)
			}
		})
		if p := next(t, l); p.Epoch != 3 || p.Position != 16 {
			t.Errorf("got %+v", p)
		}
		if s := l.State(); s.Epoch != 3 || s.Position != 24 {
			t.Errorf("state %v", s)
		}
	})
}

// Each batch goes to one caller, in order.
func TestConcurrentNext(t *testing.T) {
	l := newLoader(t, digits(800), loader.Options{Layout: newLayout(t, document(8)), Shuffle: true, Epochs: 2})
	var mu sync.Mutex
	seen := map[batch.Cursor]int{}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			last := batch.Cursor{Epoch: -1}
			for {
				b, err := l.Next(t.Context())
				if status.CodeOf(err) == status.End {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				c := b.Step().Cursor
				if c.Epoch < last.Epoch || (c.Epoch == last.Epoch && c.Position <= last.Position) {
					t.Errorf("%v was delivered after %v", c, last)
				}
				last = c
				b.Release()
				mu.Lock()
				seen[c]++
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	for c, n := range seen {
		if n != 1 {
			t.Errorf("batch %v was delivered %d times", c, n)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d batches were delivered, want 200", len(seen))
	}
}

// If a call is canceled while its batch is delivered, no batch is lost.
func TestCancelAtDelivery(t *testing.T) {
	src := digits(8000)
	var mu sync.Mutex
	cancel := func() {}
	src.Hook = func(context.Context, []int64) error {
		mu.Lock()
		defer mu.Unlock()
		cancel()
		return nil
	}
	l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Prefetch: -1, Epochs: 1})
	for step := int64(0); step < 1000; {
		ctx, stop := context.WithCancel(t.Context())
		mu.Lock()
		cancel = stop
		mu.Unlock()
		b, err := l.Next(ctx)
		stop()
		if status.CodeOf(err) == status.Cancelled {
			continue
		}
		if err != nil || b.Step().Index != step {
			t.Fatalf("got step %d, want %d: %v", b.Step().Index, step, err)
		}
		b.Release()
		step++
	}
}

// The loader keeps no reference to a delivered batch, so it can be collected.
func TestNoReferenceAfterDelivery(t *testing.T) {
	l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Prefetch: 4, Epochs: 1})
	for range 7 {
		next(t, l)
	}
	for l.Stats().Queued < 3 { // the rest of the epoch: no later batch overwrites a reference
		runtime.Gosched()
	}
	checkCollected(t, l)
	next(t, l)
}

// Nor does it keep one if ready batches moved to the front of the list.
func TestNoReferenceAfterMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(48)
		src.Hook = aSecond
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Prefetch: 4, Epochs: 1})
		next(t, l)
		time.Sleep(10 * time.Second) // four are ready
		next(t, l)
		next(t, l)
		time.Sleep(10 * time.Second) // the last one is built, and two have moved
		next(t, l)
		checkCollected(t, l)
	})
}

// checkCollected takes a batch and checks that it is collected when its owner drops it.
func checkCollected(t *testing.T, l *loader.Loader) {
	t.Helper()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	gone := weak.Make(b)
	b = nil
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the loader still refers to a batch that it delivered")
	}
}
