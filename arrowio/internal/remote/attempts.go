package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

const (
	// patience is how long attempts go on without a byte.
	patience = 5 * time.Minute

	// The pause after n failures in a row is random, up to firstPause × 2^n, and up to longestPause.
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// attempts counts the failures of one read.
type attempts struct {
	failed int
	since  time.Time // of the first failure after the last byte

	renewed bool // credentials were renewed
}

// progress forgets failures, because bytes came.
func (a *attempts) progress() { *a = attempts{} }

// again waits before the next attempt. It returns an error instead if that attempt would fail in
// the same way, if patience has ended, or if ctx has.
func (a *attempts) again(ctx context.Context, err error) error {
	f, ok := errors.AsType[*fault](err)
	switch {
	case !ok:
		return err
	case f.renewed && !a.renewed:
		a.renewed = true
		return ctx.Err()
	case !f.passes:
		return f.Unwrap()
	}
	now := time.Now()
	if a.failed == 0 {
		a.since = now
	}
	a.failed++
	pause := max(f.after, rand.N(min(firstPause<<min(a.failed, 10), longestPause)))
	if now.Add(pause).Sub(a.since) > patience {
		f.error.Msg += fmt.Sprintf(", in each of %d attempts", a.failed)
		return f.Unwrap()
	}
	return sleep(ctx, pause)
}

// resets matches the seconds until a limit on requests ends, as in RateLimit: "api";r=0;t=17.
var resets = regexp.MustCompile(`(?:^|;)\s*t=([0-9]{1,6})\b`)

// pauseOf returns how long a server wants no further request: by Retry-After, in seconds or as a time, or
// by the t= of RateLimit.
func pauseOf(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	if found := resets.FindStringSubmatch(h.Get("RateLimit")); found != nil {
		seconds, _ := strconv.ParseUint(found[1], 10, 31)
		return time.Duration(seconds) * time.Second
	}
	return 0
}
