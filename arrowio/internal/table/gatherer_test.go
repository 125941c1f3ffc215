package table

import (
	"math"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

// TestCheckRecords tries numbers at every bound, alone and first and last in a
// list.
func TestCheckRecords(t *testing.T) {
	for _, n := range []int64{0, 1, 100, 1 << 40} {
		x := &Table{Index: NewIndex([]int64{n})}
		for _, r := range []int64{math.MinInt64, -n - 1, -2, -1, 0, n - 1, n, n + 1, 1 << 62, math.MaxInt64} {
			legal := r >= -1 && r < n
			for _, list := range [][]int64{{r}, {r, -1, -1}, {-1, -1, r}} {
				zeros, err := x.checkRecords(list)
				if legal != (err == nil) || !legal && status.CodeOf(err) != status.OutOfRange {
					t.Errorf("record %d of %d: %v", r, n, err)
				}
				if legal && zeros != (r < 0 || len(list) > 1) {
					t.Errorf("%v of %d: zeros is %v", list, n, zeros)
				}
			}
		}
	}
	if zeros, err := (&Table{Index: NewIndex([]int64{3})}).checkRecords(nil); zeros || err != nil {
		t.Errorf("no records: %v, %v", zeros, err)
	}
	_, err := (&Table{Index: NewIndex([]int64{3})}).checkRecords([]int64{2, 3})
	if want := "arrowio: record 3 of 3"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
