package source_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestCalls: Close cancels the calls under way, waits for them, releases once,
// and refuses later calls.
func TestCalls(t *testing.T) {
	released, failure := make(chan struct{}, 2), errors.New("the disk is gone")
	c := source.NewCalls("box", "drawer", func() error { released <- struct{}{}; return failure })
	for range 2 {
		if err := c.Enter(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := c.Join(t.Context())
	defer stop()
	closed := make(chan error)
	for range 2 {
		go func() { closed <- c.Close(0) }()
	}
	<-ctx.Done()
	err := c.Enter()
	if want := "box: the drawer is closed"; status.CodeOf(err) != status.InvalidState || err.Error() != want {
		t.Errorf("Enter after Close: %v", err)
	}
	c.Leave()
	select {
	case <-closed:
		t.Error("Close did not wait for all calls")
	case <-released:
		t.Error("released during a call")
	default:
	}
	c.Leave()
	for range 2 {
		if err := <-closed; err != failure {
			t.Errorf("Close: %v", err)
		}
	}
	if err := c.Close(0); err != failure || len(released) != 1 {
		t.Errorf("a third Close: %v, released %d times", err, len(released))
	}
}

// TestCallsPatience: Close returns without a call that ignores its context for
// too long. The end of that call releases.
func TestCallsPatience(t *testing.T) {
	released := make(chan struct{})
	c := source.NewCalls("box", "drawer", func() error { close(released); return nil })
	if err := c.Enter(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(time.Nanosecond); err != nil {
		t.Errorf("Close: %v", err)
	}
	select {
	case <-released:
		t.Fatal("released during a call")
	default:
	}
	c.Leave()
	<-released
}

// TestCallsJoin: a joined context ends with the caller's, too. There may be
// nothing to release.
func TestCallsJoin(t *testing.T) {
	c := source.NewCalls("box", "drawer", nil)
	outer, cancel := context.WithCancel(t.Context())
	ctx, stop := c.Join(outer)
	defer stop()
	cancel()
	<-ctx.Done()
	if err := c.Close(0); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestCallsJoinMany: Close cancels the joined contexts that were not stopped, whatever the
// order of the others. A context that is joined after Close has ended.
func TestCallsJoinMany(t *testing.T) {
	random.Rounds(t, 20, 1000, func(t *testing.T, r *rand.Rand) {
		c := source.NewCalls("box", "drawer", nil)
		type call struct {
			ctx  context.Context
			stop func()
		}
		var under []call
		for range r.IntN(40) {
			if i := r.IntN(len(under) + 1); i < len(under) && r.IntN(2) == 0 {
				under[i].stop()
				if under[i].ctx.Err() == nil {
					t.Error("a stopped context has not ended")
				}
				under = slices.Delete(under, i, i+1)
				continue
			}
			ctx, stop := c.Join(t.Context())
			under = append(under, call{ctx, stop})
		}
		for _, u := range under {
			if u.ctx.Err() != nil {
				t.Error("a context has ended before Close")
			}
		}
		if err := c.Close(0); err != nil {
			t.Error(err)
		}
		ctx, stop := c.Join(t.Context())
		for _, u := range append(under, call{ctx, stop}) {
			if u.ctx.Err() == nil {
				t.Error("a context has not ended after Close")
			}
			u.stop()
		}
	})
}
