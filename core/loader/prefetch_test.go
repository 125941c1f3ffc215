package loader_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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

// Making takes a second, using takes a second, and both go on at once.
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
		if s.Gather != 10*time.Second || s.ConsumerWait != time.Second || s.ProducerWait != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// No more than prefetch batches stand ready, and nobody works then.
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
						t.Errorf("%d stand ready, %d live, want %d", s.Queued, s.LiveBatches, c.ready)
					}
				}
				time.Sleep(5 * time.Second)
				if s := l.Stats(); c.ready > 0 && s.ProducerWait != 5*time.Second {
					t.Errorf("the loader waited %v for its consumer, want 5s", s.ProducerWait)
				}
				if n := src.Counts().Gathers; n != 4+c.ready {
					t.Errorf("%d gathers, want %d", n, 4+c.ready)
				}
			})
		})
	}
}

// A consumer that keeps every batch is never made to wait for itself.
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
			checkBytes(t, l, b) // unchanged by all that came later
			b.Release()
		}
	})
}

// Released memory serves later batches: a steady loop lives on what its reading
// ahead needs, the batch in use and the one being made.
func TestMemoryIsUsedAgain(t *testing.T) {
	l := newLoader(t, digits(800), loader.Options{Layout: newLayout(t, document(8)), Prefetch: 3, Epochs: 1})
	slabs := map[*byte]bool{}
	for b, err := range l.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		slabs[unsafe.SliceData(b.Bytes(0))] = true
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
		if b, err := l.Next(ctx); err != nil { // the deadline has passed, but a batch stands ready
			t.Error(err)
		} else {
			b.Release()
		}
		for step := int64(1); step < 10; step++ {
			if p := next(t, l); p.Step != step {
				t.Errorf("step %d came, want %d", p.Step, step)
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

// A read that a disk does not answer holds Close for a second; it cleans up
// after itself when it ends.
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

// Seek during a gather drops it, and the waiting call gets the new batch.
func TestSeekWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		src.Hook = func(ctx context.Context, _ []int64) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
				return nil
			}
		}
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

func TestErrorsInPlace(t *testing.T) {
	boom := status.New(status.DataLoss, "disk", "sector 7 is unreadable").WithHint("buy a disk").With("path", "a.arrow")
	synctest.Test(t, func(t *testing.T) {
		src := digits(80)
		broken := true
		src.Hook = func(_ context.Context, records []int64) error {
			if broken && records[0] == 16 {
				return boom
			}
			return nil
		}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Prefetch: 4})
		next(t, l)
		synctest.Wait() // the failure has happened, but its turn has not come
		next(t, l)
		for range 2 {
			_, err := l.Next(t.Context())
			wantError(t, err, status.DataLoss, "loader: step 2 of epoch 0: disk: sector 7 is unreadable; buy a disk")
			if e := err.(*status.Error); e.Attr("path") != "a.arrow" || e.Attr("step") != int64(2) || !errors.Is(err, boom) {
				t.Errorf("facts are lost: %v", e.Attrs)
			}
			if s := l.State(); s.Position != 16 {
				t.Errorf("the cursor moved to %v", s)
			}
		}
		broken = false
		if p := next(t, l); p.Step != 2 {
			t.Errorf("step %d came after the failure, want 2", p.Step)
		}
	})
}

func TestPanicBecomesError(t *testing.T) {
	for _, workers := range []int{1, 2} {
		src := digits(80)
		src.Hook = func(_ context.Context, records []int64) error {
			if slices.Contains(records, 19) {
				panic("worker fell over")
			}
			return nil
		}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Workers: workers})
		other := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8))})
		next(t, l)
		next(t, l)
		_, err := l.Next(t.Context())
		wantError(t, err, status.Internal, "loader: step 2 of epoch 0: loader: panic: worker fell over; "+
			"this is a bug in meshfeed: please report it with the file and the options that led here")
		if err := l.Seek(batch.Cursor{Position: 24}); err != nil {
			t.Error(err)
		}
		next(t, l) // goes on elsewhere
		next(t, other)
	}
}

// Of several workers one fails: the others are told to stop, and the error is
// the failure, whichever worker had it.
func TestWorkersFailTogether(t *testing.T) {
	for row := range int64(4) {
		src := digits(80)
		src.Hook = func(ctx context.Context, records []int64) error {
			if slices.Contains(records, row) {
				return status.New(status.DataLoss, "disk", "sector 7 is unreadable")
			}
			<-ctx.Done()
			return ctx.Err()
		}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Workers: 4})
		_, err := l.Next(t.Context())
		wantError(t, err, status.DataLoss, "loader: step 0 of epoch 0: disk: sector 7 is unreadable")
	}
}

// badAllocator fails, or panics, from the third batch on.
type badAllocator struct {
	heap    *batch.Heap
	n       int
	panics  bool
	commits bool
}

func (a *badAllocator) Alloc(blocks []batch.Block) (batch.Memory, error) {
	a.n++
	m, err := a.heap.Alloc(blocks)
	if a.n < 3 || err != nil {
		return m, err
	}
	if a.commits {
		return badMemory{m}, nil
	}
	defer m.Free()
	if a.panics {
		panic("no memory for you")
	}
	return nil, status.New(status.ResourceExhausted, "pool", "the pool is empty")
}

type badMemory struct{ batch.Memory }

func (badMemory) Commit(context.Context) error {
	return status.New(status.IO, "device", "the transfer did not begin")
}

func TestAllocatorFails(t *testing.T) {
	for _, c := range []struct {
		a    badAllocator
		code status.Code
		text string
	}{
		{badAllocator{}, status.ResourceExhausted, "loader: step 2 of epoch 0: pool: the pool is empty"},
		{badAllocator{panics: true}, status.Internal, "loader: step 2 of epoch 0: loader: panic: no memory for you; this is a bug in meshfeed: please report it with the file and the options that led here"},
		{badAllocator{commits: true}, status.IO, "loader: step 2 of epoch 0: device: the transfer did not begin"},
	} {
		c.a.heap = batch.NewHeap(2)
		l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Allocator: &c.a})
		next(t, l)
		next(t, l)
		_, err := l.Next(t.Context())
		wantError(t, err, c.code, c.text)
		closeLoader(t, l)
		if n, bytes := c.a.heap.Live(); n != 0 || bytes != 0 {
			t.Errorf("%d batches of %d bytes are lost", n, bytes)
		}
	}
}

func TestMaxHostBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lay := newLayout(t, document(8))
		slab := int64(2*64 + 64) // two half images of 64 bytes, four labels
		_, err := loader.New(digits(80), loader.Options{Layout: lay, MaxHostBytes: slab - 1})
		wantError(t, err, status.ResourceExhausted, "loader: one batch takes 192 bytes in process 0, but max_host_bytes is 191; raise it: reading ahead takes 2 batches more")

		l := newLoader(t, digits(80), loader.Options{Layout: lay, MaxHostBytes: 3 * slab, Prefetch: 2, Epochs: 1})
		var kept []*batch.Batch
		for range 3 { // reading ahead gives way to what the consumer holds
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, b)
			synctest.Wait()
			if s := l.Stats(); s.LiveBytes != 3*slab {
				t.Errorf("%d bytes live, want %d", s.LiveBytes, 3*slab)
			}
		}
		for range 2 {
			_, err = l.Next(t.Context())
			wantError(t, err, status.ResourceExhausted, "loader: step 3 of epoch 0: loader: 3 batches of 576 bytes in all are not released, "+
				"and one more of 192 would exceed max_host_bytes = 576; release batches, or drop references to their arrays; then ask again")
		}
		kept[0].Release() // room before it is asked for: no failure is waiting from before
		if p := next(t, l); p.Step != 3 {
			t.Errorf("step %d came, want 3", p.Step)
		}
		for _, b := range kept {
			b.Release()
		}
		for step := int64(4); step < 10; step++ {
			if p := next(t, l); p.Step != step {
				t.Errorf("step %d came, want %d", p.Step, step)
			}
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
				c := b.Place().Cursor
				if c.Epoch < last.Epoch || (c.Epoch == last.Epoch && c.Position <= last.Position) {
					t.Errorf("%v came after %v", c, last)
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
			t.Errorf("batch %v came %d times", c, n)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d batches came, want 200", len(seen))
	}
}

// A cancellation that meets the hand-over loses nothing either.
func TestCancelAtHandOver(t *testing.T) {
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
		if err != nil || b.Place().Step != step {
			t.Fatalf("step %d came, want %d: %v", b.Place().Step, step, err)
		}
		b.Release()
		step++
	}
}

// A batch that was handed over belongs to its owner alone: the loader does not
// keep it from the collector.
func TestLoaderLetsGo(t *testing.T) {
	l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Prefetch: 4, Epochs: 1})
	for range 7 {
		next(t, l)
	}
	for l.Stats().Queued < 3 { // the rest of the epoch: nothing follows that could take the place
		runtime.Gosched()
	}
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	gone := weak.Make(b)
	b = nil
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the loader still refers to a batch that it handed over")
	}
	next(t, l)
}
