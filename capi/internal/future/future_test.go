package future

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Start("test", func(context.Context) (int, error) { time.Sleep(3 * time.Second); return 7, nil })
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Wait(short); status.CodeOf(err) != status.Timeout {
			t.Errorf("after the timeout got %v", err)
		}
		if v, err := f.Wait(t.Context()); v != 7 || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
		if v, err := f.Wait(short); v != 7 || err != nil {
			t.Errorf("an existing value does not depend on the context: %v, %v", v, err)
		}
	})
}

func TestFailure(t *testing.T) {
	want := errors.New("disk")
	f := Start("test", func(context.Context) (int, error) { return 0, want })
	if _, err := f.Wait(t.Context()); err != want {
		t.Errorf("got %v", err)
	}
	if err := f.Drop(-1, func(_ int, err error) error { return err }); err != want {
		t.Errorf("last got %v", err)
	}
	f = Start("test", func(context.Context) (int, error) { panic("oops") })
	if _, err := f.Wait(t.Context()); status.CodeOf(err) != status.Internal {
		t.Errorf("after a panic got %v", err)
	}
}

func TestDrop(t *testing.T) {
	for _, c := range []struct {
		name            string
		takes, patience time.Duration
		after           int32 // values discarded before Drop returns
	}{
		{"exists", 0, 0, 1},
		{"comes in time", time.Second, 2 * time.Second, 1},
		{"no limit", time.Hour, -1, 1},
		{"comes late", time.Hour, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var discarded atomic.Int32
				f := Start("test", func(context.Context) (int32, error) { time.Sleep(c.takes); return 1, nil })
				if c.takes == 0 {
					f = Of(int32(1))
				}
				_ = f.Drop(c.patience, func(v int32, _ error) error { discarded.Add(v); return nil })
				if n := discarded.Load(); n != c.after {
					t.Errorf("%d discarded when Drop returned, want %d", n, c.after)
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if n := discarded.Load(); n != 1 {
					t.Errorf("%d discarded in all", n)
				}
			})
		})
	}
}

func TestLastPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Start("test", func(context.Context) (int, error) { time.Sleep(time.Hour); return 1, nil })
		_ = f.Drop(0, func(int, error) error { panic("oops") })
		time.Sleep(2 * time.Hour)
	})
}

// TestCancel ends the context of a function, by Cancel, Stop and Drop.
func TestCancel(t *testing.T) {
	for name, end := range map[string]func(*Future[int]){
		"Cancel": (*Future[int]).Cancel,
		"Stop": func(f *Future[int]) {
			if err := f.Stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("Stop returned %v", err)
			}
		},
		"Drop": func(f *Future[int]) { _ = f.Drop(-1, func(int, error) error { return nil }) },
	} {
		f := Start("test", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		end(f)
		if err := f.Ready(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
