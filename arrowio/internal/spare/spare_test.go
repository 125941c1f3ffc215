package spare

import (
	"slices"
	"testing"
	"unsafe"
)

// TestTake: a buffer is used again for about as many bytes, and not for others.
func TestTake(t *testing.T) {
	for _, c := range []struct {
		given, taken int64
		same         bool
	}{
		{1 << 20, 1 << 20, true},
		{9 << 17, 1 << 20, true},
		{9<<17 + 1, 1 << 20, false}, // it would waste memory
		{1 << 20, 1<<20 + 1, false},
		{least - 1, least - 1, false},
		{most + 1, most + 1, false},
	} {
		given := make([]byte, c.given)
		same := false
		for range 100 { // a sync.Pool forgets some of its content under the race detector
			Give(given)
			b := Take(c.taken)
			if int64(len(b)) != c.taken {
				t.Fatalf("%d bytes instead of %d", len(b), c.taken)
			}
			same = same || unsafe.SliceData(b) == unsafe.SliceData(given)
			if same || !c.same && slices.Contains([]int64{least - 1, most + 1}, c.given) {
				break
			}
		}
		if same != c.same {
			t.Errorf("%d bytes for %d: used again %v", c.given, c.taken, same)
		}
	}
}
