package source_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Close cancels those who are inside, waits for them, releases once, and lets
// nobody in any more.
func TestGate(t *testing.T) {
	released, failure := make(chan struct{}, 2), errors.New("the disk is gone")
	g := source.NewGate("box", "drawer", func() error { released <- struct{}{}; return failure })
	for range 2 {
		if err := g.Enter(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := g.Join(t.Context())
	defer stop()
	closed := make(chan error)
	for range 2 {
		go func() { closed <- g.Close(0) }()
	}
	<-ctx.Done()
	err := g.Enter()
	if want := "box: the drawer is closed"; status.CodeOf(err) != status.InvalidState || err.Error() != want {
		t.Errorf("Enter after Close: %v", err)
	}
	g.Leave()
	select {
	case <-closed:
		t.Error("Close did not wait for everybody")
	case <-released:
		t.Error("released under somebody who is inside")
	default:
	}
	g.Leave()
	for range 2 {
		if err := <-closed; err != failure {
			t.Errorf("Close: %v", err)
		}
	}
	if err := g.Close(0); err != failure || len(released) != 1 {
		t.Errorf("a third Close: %v, released %d times", err, len(released))
	}
}

// Close leaves alone who does not heed it for too long; the last one to leave
// releases.
func TestGatePatience(t *testing.T) {
	released := make(chan struct{})
	g := source.NewGate("box", "drawer", func() error { close(released); return nil })
	if err := g.Enter(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(time.Nanosecond); err != nil {
		t.Errorf("Close: %v", err)
	}
	select {
	case <-released:
		t.Fatal("released under somebody who is inside")
	default:
	}
	g.Leave()
	<-released
}

// A context ends with what it was joined of, too, and a gate may have nothing
// to release.
func TestGateJoin(t *testing.T) {
	g := source.NewGate("box", "drawer", nil)
	outer, cancel := context.WithCancel(t.Context())
	ctx, stop := g.Join(outer)
	defer stop()
	cancel()
	<-ctx.Done()
	if err := g.Close(0); err != nil {
		t.Errorf("Close: %v", err)
	}
}
