// Package future holds values that are being made in the background, so that
// a caller who may not block can ask for one again and again.
//
// Making a value may hang in the file system, and nothing can end that. So
// whoever gives up on a [Future] says what becomes of the value if it should
// come after all.
package future

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/internal/guard"
)

// Future is a value that stands, or will. It is safe for concurrent use.
type Future[T any] struct {
	done  chan struct{}
	value T
	err   error

	mu      sync.Mutex
	settled bool
	last    func(T, error) // set by a Drop that did not wait
}

// Start makes a value in the background. A panic of fn becomes the error.
func Start[T any](op string, fn func() (T, error)) *Future[T] {
	f := &Future[T]{done: make(chan struct{})}
	guard.Go(op, func() error {
		value, err := fn()
		if err == nil {
			f.settle(value, nil)
		}
		return err
	}, func(err error) {
		var none T
		f.settle(none, err)
	})
	return f
}

// Of gives a future whose value stands.
func Of[T any](value T) *Future[T] {
	f := &Future[T]{done: make(chan struct{})}
	f.settle(value, nil)
	return f
}

func (f *Future[T]) settle(value T, err error) {
	f.mu.Lock()
	if f.settled { // last has panicked
		f.mu.Unlock()
		return
	}
	last := f.last
	f.value, f.err, f.settled = value, err, true
	close(f.done)
	f.mu.Unlock()
	if last != nil {
		last(value, err)
	}
}

// Wait gives the value, or the error of making it. A ctx that ends first gives
// its cause.
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
		var none T
		return none, context.Cause(ctx)
	}
}

// Drop gives the outcome to last: on this thread if it comes within patience
// (negative is for ever), else on the goroutine that makes it. It is called
// once, and nobody waits after it.
func (f *Future[T]) Drop(patience time.Duration, last func(T, error)) {
	if !f.within(patience) {
		f.mu.Lock()
		late := !f.settled
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

func (f *Future[T]) within(patience time.Duration) bool {
	select {
	case <-f.done:
		return true
	default:
	}
	if patience < 0 {
		<-f.done
		return true
	}
	select {
	case <-f.done:
		return true
	case <-time.After(patience):
		return false
	}
}
