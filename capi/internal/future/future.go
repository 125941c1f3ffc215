// Package future holds values that are created in the background, so that a
// caller with a timeout can ask for a value several times.
//
// Creating a value may hang in the file system, and nothing can end that. A
// caller that no longer needs a [Future] therefore says, with [Future.Drop],
// what happens to the value if it is created later.
package future

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/internal/guard"
)

// Future is a value that exists now or later. It is safe for concurrent use.
type Future[T any] struct {
	cancel context.CancelFunc
	done   chan struct{} // closed after value and err are set
	value  T
	err    error
}

// Start creates a value in the background. A panic of fn becomes the error.
// The context of fn ends with Cancel and with Drop.
func Start[T any](op string, fn func(context.Context) (T, error)) *Future[T] {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Future[T]{cancel: cancel, done: make(chan struct{})}
	guard.Go(op, func() error {
		f.value, f.err = fn(ctx)
		close(f.done)
		return nil
	}, func(panicked error) {
		f.err = panicked
		close(f.done)
	})
	return f
}

// Of returns a future of an existing value.
func Of[T any](value T) *Future[T] {
	f := &Future[T]{cancel: func() {}, done: make(chan struct{}), value: value}
	close(f.done)
	return f
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

// Stop cancels the future, waits until it has an outcome, and returns the error.
func (f *Future[T]) Stop() error {
	f.cancel()
	<-f.done
	return f.err
}

// Drop cancels the future and passes its outcome to last, as After does.
func (f *Future[T]) Drop(patience time.Duration, last func(T, error) error) error {
	f.cancel()
	return After(f.done, patience, func() error { return last(f.value, f.err) })
}

// After calls fn after done is closed. If that happens within patience (negative:
// no limit), it calls fn on this goroutine and returns the error of fn. Otherwise
// it returns nil, and another goroutine calls fn later.
func After(done <-chan struct{}, patience time.Duration, fn func() error) error {
	if within(done, patience) {
		return fn()
	}
	guard.Go("future", func() error {
		<-done
		return fn()
	}, func(error) {}) // the caller has returned
	return nil
}

func within(done <-chan struct{}, patience time.Duration) bool {
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
