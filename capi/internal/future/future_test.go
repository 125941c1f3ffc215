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
		f := Start("test", func() (int, error) { time.Sleep(3 * time.Second); return 7, nil })
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Wait(short); status.CodeOf(err) != status.Timeout {
			t.Errorf("a timeout gives %v", err)
		}
		if v, err := f.Wait(t.Context()); v != 7 || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
		if v, err := f.Wait(short); v != 7 || err != nil {
			t.Errorf("a value that stands is given whatever the context: %v, %v", v, err)
		}
	})
}

func TestFailure(t *testing.T) {
	want := errors.New("disk")
	f := Start("test", func() (int, error) { return 0, want })
	if _, err := f.Wait(t.Context()); err != want {
		t.Errorf("got %v", err)
	}
	f.Drop(-1, func(_ int, err error) {
		if err != want {
			t.Errorf("the last to know got %v", err)
		}
	})
	f = Start("test", func() (int, error) { panic("oops") })
	if _, err := f.Wait(t.Context()); status.CodeOf(err) != status.Internal {
		t.Errorf("a panic gives %v", err)
	}
}

func TestDrop(t *testing.T) {
	for _, c := range []struct {
		name            string
		takes, patience time.Duration
		after           int32 // values discarded when Drop returns
	}{
		{"stands", 0, 0, 1},
		{"comes in time", time.Second, 2 * time.Second, 1},
		{"for ever", time.Hour, -1, 1},
		{"comes late", time.Hour, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var discarded atomic.Int32
				f := Start("test", func() (int32, error) { time.Sleep(c.takes); return 1, nil })
				if c.takes == 0 {
					f = Of(int32(1))
				}
				f.Drop(c.patience, func(v int32, _ error) { discarded.Add(v) })
				if n := discarded.Load(); n != c.after {
					t.Errorf("%d discarded when Drop returned, want %d", n, c.after)
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if n := discarded.Load(); n != 1 {
					t.Errorf("%d discarded in the end", n)
				}
			})
		})
	}
}

func TestLastPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Start("test", func() (int, error) { time.Sleep(time.Hour); return 1, nil })
		f.Drop(0, func(int, error) { panic("oops") })
		time.Sleep(2 * time.Hour)
	})
}
