package handle

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// object counts calls of Close.
type object struct {
	patience time.Duration
	closed   atomic.Int32
	err      error
}

func (o *object) Patience() time.Duration { return o.patience }
func (o *object) Close() error            { o.closed.Add(1); return o.err }

func TestStaleHandles(t *testing.T) {
	var table Table
	first := table.Put(&object{})
	if _, err := table.Release(first); err != nil {
		t.Fatal(err)
	}
	second := table.Put(&object{})
	if first == second {
		t.Fatalf("handle %#x is used twice", first)
	}
	for _, h := range []uint64{first, 0, 1, second + 1, math.MaxUint64} {
		_, err := table.Pin(h)
		if status.CodeOf(err) != status.InvalidState {
			t.Errorf("Pin(%#x): %v", h, err)
		}
		if gone, err := table.Release(h); gone || err == nil || table.Cancel(h) == nil {
			t.Errorf("%#x was accepted", h)
		}
	}
	_, err := table.Pin(first)
	want := "handle: there is no object under handle 0x100000000; it was released, or it did not come from this library"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestReleaseCancelsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table Table
		o := &object{patience: -1}
		h := table.Put(o)
		e, _ := table.Pin(h)
		done := make(chan error)
		go func() {
			_, err := table.Release(h)
			done <- err
		}()
		<-e.Context.Done()
		time.Sleep(time.Hour)
		if o.closed.Load() != 0 {
			t.Fatal("closed while in use")
		}
		if !errors.Is(context.Cause(e.Context), context.Canceled) {
			t.Errorf("cause is %v", context.Cause(e.Context))
		}
		e.Unpin()
		if err := <-done; err != nil || o.closed.Load() != 1 {
			t.Errorf("released with %v, closed %d times", err, o.closed.Load())
		}
	})
}

func TestReleaseReturnsAfterPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table Table
		o := &object{patience: time.Second}
		h := table.Put(o)
		e, _ := table.Pin(h)
		began := time.Now()
		if gone, err := table.Release(h); !gone || err != nil || time.Since(began) != time.Second {
			t.Errorf("released with %v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if o.closed.Load() != 0 {
			t.Fatal("closed while in use")
		}
		e.Unpin()
		synctest.Wait()
		if o.closed.Load() != 1 {
			t.Errorf("closed %d times", o.closed.Load())
		}
	})
}

func TestReleaseReturnsTheErrorOfClose(t *testing.T) {
	var table Table
	want := errors.New("disk")
	if gone, err := table.Release(table.Put(&object{err: want})); !gone || err != want {
		t.Errorf("got %v", err)
	}
}

func TestCancelAll(t *testing.T) {
	var table Table
	var entries []*Entry
	for range 3 {
		e, _ := table.Pin(table.Put(&object{}))
		entries = append(entries, e)
	}
	table.CancelAll()
	for _, e := range entries {
		if e.Context.Err() == nil {
			t.Error("a context has not ended")
		}
		e.Unpin()
	}
	if n := len(table.CancelAll()); n != 3 {
		t.Errorf("%d handles are left, want 3", n)
	}
}

// TestConcurrentUse: eight goroutines create, use and release handles. Every
// object must be closed exactly once, and never while it is in use.
func TestConcurrentUse(t *testing.T) {
	var table Table
	var wait sync.WaitGroup
	var shared [16]atomic.Uint64
	var made, closed atomic.Int64
	for range 8 {
		wait.Go(func() {
			for i := range 2000 {
				current := &shared[i%len(shared)]
				made.Add(1)
				table.Release(current.Swap(table.Put(&counted{closed: &closed})))
				if e, err := table.Pin(current.Load()); err == nil {
					if e.Object.(*counted).gone.Load() {
						t.Error("pinned an object that was closed")
					}
					e.Unpin()
				}
			}
		})
	}
	wait.Wait()
	for i := range shared {
		table.Release(shared[i].Load())
	}
	if n := len(table.CancelAll()); n != 0 || made.Load() != closed.Load() {
		t.Errorf("%d handles left, %d objects made, %d closed", n, made.Load(), closed.Load())
	}
}

type counted struct {
	closed *atomic.Int64
	gone   atomic.Bool
}

func (c *counted) Patience() time.Duration { return -1 }
func (c *counted) Close() error {
	c.closed.Add(1)
	c.gone.Store(true)
	return nil
}

func BenchmarkPin(b *testing.B) {
	var table Table
	h := table.Put(&object{})
	for b.Loop() {
		e, _ := table.Pin(h)
		e.Unpin()
	}
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table Table
		table.Idle(t.Context()) // no object is in use
		first, second := table.Put(&object{}), table.Put(&object{patience: time.Second})
		a, _ := table.Pin(first)
		b, _ := table.Pin(second)
		var idle atomic.Int32
		for range 2 {
			go func() {
				table.Idle(t.Context())
				idle.Add(1)
			}()
		}
		a.Unpin()
		if _, err := table.Release(second); err != nil { // returns after its patience; the pin still counts
			t.Fatal(err)
		}
		if synctest.Wait(); idle.Load() != 0 {
			t.Error("idle while an object is in use")
		}
		b.Unpin()
		if synctest.Wait(); idle.Load() != 2 {
			t.Errorf("%d of 2 waits have ended", idle.Load())
		}
		again, _ := table.Pin(first)
		again.Unpin() // no call waits
	})
}

func TestIdleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table Table
		e, _ := table.Pin(table.Put(&object{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		table.Idle(ctx)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		e.Unpin()
		table.Idle(t.Context()) // the wait that timed out has no effect
	})
}
