package decoded

import (
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/arrowio/internal/format"
)

// budgetBytes bounds the memory of all decodings in progress in this process: their stored
// bytes and their results, until a gather has used these. One column of a unit may take all of it,
// and then is decoded alone.
const budgetBytes = format.MaxColumn

// A gather waits for the budget only while it holds none of it. So some gather can always
// go on.
var budget = semaphore.NewWeighted(budgetBytes)

// reservation is a part of the budget. A decoding and the gather that began it both end it, and
// then others can have it.
type reservation struct {
	bytes int64
	users atomic.Int32
}

func newReservation(bytes int64) *reservation {
	r := &reservation{bytes: bytes}
	r.users.Store(2)
	return r
}

func (r *reservation) end() {
	if r.users.Add(-1) == 0 {
		budget.Release(r.bytes)
	}
}
