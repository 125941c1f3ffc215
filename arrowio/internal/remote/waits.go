package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// leastLate is the shortest wait after which an attempt may be late. It is late after lateTimes the wait that 95 of
	// 100 requests stay below. One of lateShare requests may end for that, so a slow server is not asked twice for all.
	leastLate = 250 * time.Millisecond
	lateTimes = 4
	lateShare = 33
)

// Reasons why an attempt ends.
var (
	errStalled = errors.New("no bytes came for 10 s")
	errLate    = errors.New("no bytes came for much longer than for other requests")
)

// waits has the longest wait for a byte of each of the last requests to a host. On busy processors all are longer.
type waits struct {
	mu              sync.Mutex
	list            [64]time.Duration
	requests, ended int
}

// limit returns the wait after which an attempt is late.
func (w *waits) limit() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests < len(w.list)/2 {
		return stall
	}
	list := slices.Clone(w.list[:min(w.requests, len(w.list))])
	slices.Sort(list)
	return min(max(lateTimes*list[len(list)*95/100], leastLate), stall)
}

// end reports whether a late attempt ends, and counts it.
func (w *waits) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended*lateShare > w.requests {
		return false
	}
	w.ended++
	return true
}

// watch ends an attempt that gets no byte. One goroutine calls its methods.
type watch struct {
	of            *waits
	limit         time.Duration
	late, stalled *time.Timer
	last          time.Time
	longest       time.Duration
}

func (w *waits) watch(cancel context.CancelCauseFunc) *watch {
	limit := w.limit()
	return &watch{
		of: w, limit: limit, last: time.Now(),
		stalled: time.AfterFunc(stall, func() { cancel(errStalled) }),
		late: time.AfterFunc(limit, func() {
			if limit < stall && w.end() {
				cancel(errLate)
			}
		}),
	}
}

// progress notes that bytes came.
func (a *watch) progress() {
	now := time.Now()
	a.longest, a.last = max(a.longest, now.Sub(a.last)), now
	a.late.Reset(a.limit)
	a.stalled.Reset(stall)
}

// stop ends the watch of an attempt that has ended. Its waits count if it has all bytes.
func (a *watch) stop(whole bool) {
	a.late.Stop()
	a.stalled.Stop()
	if !whole {
		return
	}
	w := a.of
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list[w.requests%len(w.list)] = a.longest
	w.requests++
}
