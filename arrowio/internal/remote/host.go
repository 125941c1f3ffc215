package remote

import (
	"context"
	"slices"
	"sync"
	"time"
)

// most is the most requests in progress to a host.
const most = 16

// adapt is the shortest time between two changes of the bound on requests.
const adapt = time.Second

// host bounds the requests to a host. Whenever the host is busy, the bound is halved, and grows by one
// for every second without that.
type host struct {
	mu       sync.Mutex
	limit    int
	running  int
	waiting  []chan struct{}
	changed  time.Time // when the limit was changed
	until    time.Time // no request begins before that, because the host asked for it
	answered bool      // some request reached it
}

// enter waits for its turn to send a request.
func (h *host) enter(ctx context.Context) error {
	for {
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
	if until := now.Add(pause); busy && until.After(h.until) {
		h.until = until
	}
	if now.Sub(h.changed) >= adapt {
		switch {
		case busy:
			h.limit, h.changed = max(h.limit/2, 1), now
		case answered && h.limit < most:
			h.limit, h.changed = h.limit+1, now
		}
	}
	h.next()
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
