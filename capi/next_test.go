package main

import (
	"context"
	"errors"
	"testing"
)

// A caller's time begins to run when he waits, and so does the timer; the end of
// the handle's context is his, before and after.
func TestBounded(t *testing.T) {
	handle, release := context.WithCancel(context.Background())
	b := &bounded{Context: handle, ms: 1}
	if _, runs := b.Deadline(); runs || b.Err() != nil {
		t.Errorf("the time runs before anybody waits: %v", b.Err())
	}
	b.stop() // of a timer that never ran
	<-b.Done()
	if !errors.Is(b.Err(), context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the time", b.Err())
	}
	for _, waits := range []bool{false, true} {
		b = &bounded{Context: handle, ms: 1 << 40}
		if waits {
			b.Done()
		}
		release()
		if !errors.Is(b.Err(), context.Canceled) {
			t.Errorf("waiting: %v: got %v, want the end of the handle", waits, b.Err())
		}
		handle, release = context.WithCancel(context.Background())
	}
	b.Done()
	b.stop()
	if _, runs := b.Deadline(); !runs || !errors.Is(b.Err(), context.Canceled) {
		t.Errorf("got %v after stop, want a timer that has ended", b.Err())
	}
	release()
}
