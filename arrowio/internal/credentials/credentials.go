// Package credentials finds the credentials for stores of objects where the tools of those stores keep them.
//
// [AWS] returns keys for S3 and for servers that speak its protocol, and [Google] returns tokens for Google Cloud
// Storage. Nothing is read or contacted before the first call of Key or Token. Both fetch credentials again
// before they expire: at most one fetch is in progress, and a caller that gives up does not end it. If a fetch
// fails, credentials that are still valid stay in use, and another fetch follows a minute later.
//
// [Sign] signs requests by AWS Signature Version 4.
//
// Errors name the source of credentials, such as a profile with its file. They never quote a file, an answer of a
// service or the output of a program, because these may have secrets.
package credentials

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

const (
	// early is how long before their expiry credentials are fetched again, unless they live for less than twice
	// that time.
	early = 5 * time.Minute

	// pause is the time between a failed fetch and the next one, while the old credentials are valid.
	pause = time.Minute

	// patience bounds one fetch.
	patience = time.Minute
)

// lease is a credential for some time.
type lease[T any] struct {
	value   T
	source  string    // where it came from
	expires time.Time // zero for never
}

// valid reports whether the lease has not expired.
func (l *lease[T]) valid(now time.Time) bool { return l.expires.IsZero() || now.Before(l.expires) }

// keeper keeps a credential, and fetches the next one in time.
type keeper[T any] struct {
	fetch func(context.Context) (lease[T], error)

	mu     sync.Mutex
	lease  *lease[T]  // nil before the first fetch, and after forget
	next   time.Time  // when to fetch again, if the lease expires
	flight *flight[T] // the fetch in progress, or nil
}

// flight is a fetch in progress. Done is closed after its result is set.
type flight[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// get returns a valid credential. It waits for a fetch only if no credential is valid.
func (k *keeper[T]) get(ctx context.Context) (T, error) {
	k.mu.Lock()
	now, have := time.Now(), k.lease
	if have == nil || !have.expires.IsZero() && !now.Before(k.next) {
		k.start()
	}
	f := k.flight
	k.mu.Unlock()
	if have != nil && have.valid(now) {
		return have.value, nil
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, status.Ended("arrowio", "the search for credentials", ctx.Err())
	}
}

// start begins a fetch, unless one is in progress. The caller holds the lock.
func (k *keeper[T]) start() {
	if k.flight != nil {
		return
	}
	f := &flight[T]{done: make(chan struct{})}
	k.flight = f
	guard.Go("arrowio", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		l, err := k.fetch(ctx)
		if now := time.Now(); err == nil && !l.valid(now) {
			err = status.Errorf(status.IO, "arrowio", "the credentials of %s expired at %s, and the clock of this machine says %s", l.source, l.expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)).
				WithHint("set the clock of this machine, or get new credentials")
		}
		if err == nil {
			k.settle(f, &l, nil)
		}
		return err
	}, func(err error) { k.settle(f, nil, err) })
}

// settle ends a fetch with a lease or an error.
func (k *keeper[T]) settle(f *flight[T], l *lease[T], err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.next = now.Add(pause)
	if f.err = err; err == nil {
		f.value, k.lease = l.value, l
		k.next = l.expires.Add(-min(early, l.expires.Sub(now)/2))
	}
	k.flight = nil
	close(f.done)
}

// forget makes the next get wait for a fetch.
func (k *keeper[T]) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lease = nil
}

// source returns the source of the present credential.
func (k *keeper[T]) source() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lease == nil {
		return nothing
	}
	return k.lease.source
}
