// Package future holds values that are created in the background, so that a
// caller with a timeout can ask for a value several times.
//
// Creating a value may hang in the file system, and nothing can end that. A
// caller that no longer needs a [Future] therefore says, with [Future.Drop],
// what happens to the value if it is created later.
package future

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/internal/guard"
)

// Future is a value that exists now or later. It is safe for concurrent use.
type Future[T any] struct {
	done   chan struct{}
	cancel context.CancelFunc
	value  T
	err    error

	mu       sync.Mutex
	complete bool
	last     func(T, error) // set by a Drop that did not wait
}

// Start creates a value in the background. A panic of fn becomes the error.
// The context of fn ends with Cancel and with Drop.
func Start[T any](op string, fn func(context.Context) (T, error)) *Future[T] {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Future[T]{done: make(chan struct{}), cancel: cancel}
	guard.Go(op, func() error {
		value, err := fn(ctx)
		if err == nil {
			f.set(value, nil)
		}
		return err
	}, func(err error) {
		var zero T
		f.set(zero, err)
	})
	return f
}

// Of returns a future of an existing value.
func Of[T any](value T) *Future[T] {
	f := &Future[T]{done: make(chan struct{}), cancel: func() {}}
	f.set(value, nil)
	return f
}

func (f *Future[T]) set(value T, err error) {
	f.mu.Lock()
	if f.complete { // last has panicked
		f.mu.Unlock()
		return
	}
	last := f.last
	f.value, f.err, f.complete = value, err, true
	close(f.done)
	f.mu.Unlock()
	if last != nil {
		last(value, err)
	}
}

// Wait returns the value, or the error of creating it. If ctx ends first, it
// returns the cause of that.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	default:
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}

// Ready waits as Wait does, and returns the error alone.
func (f *Future[T]) Ready(ctx context.Context) error {
	_, err := f.Wait(ctx)
	return err
}

// Cancel ends the context of the function that creates the value.
func (f *Future[T]) Cancel() { f.cancel() }

// Drop cancels the future and passes its outcome to last. If the outcome comes
// within patience (negative: no limit), last runs on this goroutine, else on the
// one that creates the value. Call Drop once, as the last call.
func (f *Future[T]) Drop(patience time.Duration, last func(T, error)) {
	f.cancel()
	if !Within(f.done, patience) {
		f.mu.Lock()
		late := !f.complete
		if late {
			f.last = last
		}
		f.mu.Unlock()
		if late {
			return
		}
	}
	last(f.value, f.err)
}

// Within reports whether done is closed within patience; negative waits
// without limit.
func Within(done <-chan struct{}, patience time.Duration) bool {
	select {
	case <-done:
		return true
	default:
	}
	if patience < 0 {
		<-done
		return true
	}
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}
