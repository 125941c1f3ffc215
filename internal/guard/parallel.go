package guard

import (
	"context"
	"sync"
)

// Parallel calls do for 0 to n-1, at most limit calls at a time, and returns the
// error of the lowest number. After an error no further call begins. If ctx ends
// first, its error is returned at once; calls that have begun go on in the
// background.
func Parallel(ctx context.Context, op string, n, limit int, do func(i int) error) error {
	var mu sync.Mutex
	var first error
	next, succeeded, failed, running := 0, 0, n, min(n, limit)
	if running == 0 {
		return nil
	}
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= min(n, failed) && ctx.Err() == nil
	}
	record := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			succeeded++
		} else if i < failed {
			failed, first = i, err
		}
	}
	done := make(chan struct{})
	work := func() error {
		for i, ok := take(); ok; i, ok = take() {
			record(i, Call(op, func() error { return do(i) }))
		}
		mu.Lock()
		defer mu.Unlock()
		if running--; running == 0 {
			close(done)
		}
		return nil
	}
	for range running {
		Go(op, work, nil)
	}
	select {
	case <-done:
		if succeeded == n || ctx.Err() == nil {
			return first
		}
	case <-ctx.Done():
	}
	return ctx.Err()
}
