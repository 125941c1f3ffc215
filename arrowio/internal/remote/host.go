package remote

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
)

// most is the most requests in progress to a host.
var most = blob.Far.AtOnce

// adapt is the shortest time between two changes of the bound on requests.
const adapt = time.Second

// Shared keeps a time for each name, for all processes of the machine.
type Shared interface {
	Time(name string) time.Time // zero if no time is known
	SetTime(name string, at time.Time)
}

// host bounds the requests to a host. Whenever the host is busy, the bound is halved, and grows by one
// for every second without that. What a host says to one process holds for all of the machine.
type host struct {
	name   string
	shared Shared // until, as the last process has set it; nil for none

	mu       sync.Mutex
	limit    int
	running  int
	waiting  []chan struct{}
	changed  time.Time // when the limit was changed
	until    time.Time // no request begins before that, because the host asked for it
	waits    waits
	heard    time.Time // the last time of shared
	answered bool      // some request reached it
}

// enter waits for its turn to send a request.
func (h *host) enter(ctx context.Context) error {
	for {
		h.hear()
		h.mu.Lock()
		pause := time.Until(h.until)
		if pause <= 0 && h.running < h.limit {
			h.running++
			h.mu.Unlock()
			return nil
		}
		var turn chan struct{}
		if pause <= 0 {
			turn = make(chan struct{})
			h.waiting = append(h.waiting, turn)
		}
		h.mu.Unlock()
		if err := h.wait(ctx, pause, turn); err != nil {
			return err
		}
	}
}

// wait waits for a turn, or for a pause if there is one.
func (h *host) wait(ctx context.Context, pause time.Duration, turn chan struct{}) error {
	if turn == nil {
		return sleep(ctx, pause)
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		if i := slices.Index(h.waiting, turn); i >= 0 {
			h.waiting = slices.Delete(h.waiting, i, i+1)
		} else {
			h.next() // the turn was given, and goes to another
		}
		return ctx.Err()
	}
}

// next gives turns to as many as may begin. The caller holds the lock.
func (h *host) next() {
	for free := h.limit - h.running; free > 0 && len(h.waiting) > 0; free-- {
		close(h.waiting[0])
		h.waiting = h.waiting[1:]
	}
}

// leave ends a request. Pause is for how long the host wants no further request.
func (h *host) leave(answered, busy bool, pause time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.running--
	h.answered = h.answered || answered
	switch {
	case busy:
		h.slow(now, now.Add(pause))
		if h.shared != nil && h.until.After(h.heard) {
			h.heard = h.until
			h.shared.SetTime(h.name, h.until)
		}
	case answered && h.limit < most && now.Sub(h.changed) >= adapt:
		h.limit, h.changed = h.limit+1, now
	}
	h.next()
}

// slow halves the bound, and lets no request begin before a time. The caller holds the lock.
func (h *host) slow(now, until time.Time) {
	if until.After(h.until) {
		h.until = until
	}
	if now.Sub(h.changed) >= adapt {
		h.limit, h.changed = max(h.limit/2, 1), now
	}
}

// hear slows down if the host is busy for another process of the machine. Old news is left out, and a time that no
// host may ask for.
func (h *host) hear() {
	if h.shared == nil {
		return
	}
	until := h.shared.Time(h.name)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if until.After(h.heard) && now.Sub(until) < adapt && until.Sub(now) <= patience {
		h.heard = until
		h.slow(now, until)
	}
}

// reached reports whether some request has reached the host.
func (h *host) reached() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered
}

// sleep waits for a time.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
