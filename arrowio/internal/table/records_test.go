package table

import (
	"math"
	"testing"
)

// TestWithin puts one record outside at every index.
func TestWithin(t *testing.T) {
	for length := range 20 {
		records := make([]int64, length)
		for i := range records {
			records[i] = int64(i%2) * 4
		}
		if !within(records, 5) {
			t.Errorf("%d records in [0, 5) are refused", length)
		}
		for i := range records {
			for _, r := range []int64{-1, 5, math.MinInt64, math.MaxInt64} {
				kept := records[i]
				records[i] = r
				if within(records, 5) {
					t.Errorf("record %d at index %d of %d is accepted as one of 5", r, i, length)
				}
				records[i] = kept
			}
		}
	}
}
