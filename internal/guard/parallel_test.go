package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 5, 100} {
			var calls, now, most atomic.Int64
			err := guard.Parallel(t.Context(), "test", n, 7, func(int) error {
				calls.Add(1)
				if k := now.Add(1); k > most.Load() {
					most.Store(k)
				}
				time.Sleep(time.Second) // until all that may begin have begun
				now.Add(-1)
				return nil
			})
			if err != nil || calls.Load() != int64(n) || most.Load() != int64(min(n, 7)) {
				t.Errorf("%d calls, %d at a time, %v", calls.Load(), most.Load(), err)
			}
		}
	})
}

// TestParallelReturnsTheLowestError: also if a call with a higher number fails
// before it, or panics.
func TestParallelReturnsTheLowestError(t *testing.T) {
	for range 100 {
		err := guard.Parallel(t.Context(), "test", 50, 50, func(i int) error {
			switch {
			case i == 40:
				panic("40")
			case i > 30:
				return fmt.Errorf("%d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "31" {
			t.Fatalf("got %v", err)
		}
	}
	if err := guard.Parallel(t.Context(), "test", 1, 1, func(int) error { panic("x") }); status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
}

// TestParallelEndsWithItsContext: it does not wait for calls that hang, and begins
// no others.
func TestParallelEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		hang, ended := make(chan struct{}), make(chan error)
		var calls atomic.Int64
		go func() {
			ended <- guard.Parallel(ctx, "test", 10, 2, func(int) error {
				calls.Add(1)
				<-hang
				return nil
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(hang)
		synctest.Wait()
		if calls.Load() != 2 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}
