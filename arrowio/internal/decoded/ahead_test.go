package decoded

import (
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/format/formattest"
)

// TestAheadLeavesRoom: an announcement that has taken its part of the cache decodes no
// more.
func TestAheadLeavesRoom(t *testing.T) {
	c := open(t, formattest.Toy{})
	for left, want := range map[int64]bool{0: false, 1: true} {
		a := announced{left: new(atomic.Int64)}
		a.left.Store(left)
		c.ahead.pending, c.ahead.running = []announced{a}, 1
		c.decodePending()
		if got := a.left.Load() < left; got != want || c.ahead.running != 0 {
			t.Errorf("room for %d bytes: decoded %v, %d goroutines", left, got, c.ahead.running)
		}
	}
}
