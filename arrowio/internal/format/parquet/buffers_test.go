package parquet

import (
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// oneBit describes values of one bit.
type oneBit struct{ arrowtype.Values }

func (oneBit) Size() int64 { return 1 }

// TestBooleansLeaveTheirMemory: booleans that were packed leave their memory to others.
func TestBooleansLeaveTheirMemory(t *testing.T) {
	const n = 100_000
	var used [][]byte
	for range 10 { // a sync.Pool forgets some of its content under the race detector
		fixed := make([]byte, n)
		used = append(used, fixed)
		if _, err := valueBytes(&chunk.Column{Fixed: fixed, Width: 1}, &parquet.Leaf{Physical: parquet.Boolean}, oneBit{}); err != nil {
			t.Fatal(err)
		}
	}
	for range used {
		b := spare.Take(n)
		if slices.ContainsFunc(used, func(u []byte) bool { return &u[0] == &b[0] }) {
			return
		}
	}
	t.Error("no memory of booleans is used again")
}
