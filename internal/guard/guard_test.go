package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

func TestCall(t *testing.T) {
	want := errors.New("x")
	if err := guard.Call("a", func() error { return want }); err != want {
		t.Errorf("got %v", err)
	}
	err := guard.Call("loader", func() error { panic("boom") })
	var e *status.Error
	if !errors.As(err, &e) || e.Code != status.Internal || !strings.HasPrefix(e.Error(), "loader: panic: boom; this is a bug in meshfeed") {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(e.Attr("stack").(string), "guard_test.go") {
		t.Error("the stack does not name the function")
	}
	if err := guard.Call("a", func() error { panic(want) }); !errors.Is(err, want) {
		t.Errorf("the cause is missing: %v", err)
	}
}

func TestGo(t *testing.T) {
	got := make(chan error, 1)
	guard.Go("worker", func() error { panic("boom") }, func(err error) { got <- err })
	if err := <-got; status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	done := make(chan struct{})
	guard.Go("worker", func() error { close(done); return nil }, func(err error) { t.Error(err) })
	<-done
}

func TestFault(t *testing.T) {
	describe := func(any) error { return status.New(status.DataLoss, "arrowio", "the file shrank") }
	if err := guard.Fault(func() error { return nil }, describe); err != nil {
		t.Errorf("got %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("another panic did not pass through")
		}
	}()
	_ = guard.Fault(func() error { panic("other") }, describe)
}
