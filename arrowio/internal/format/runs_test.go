package format

import (
	"reflect"
	"testing"
)

// TestRuns checks that an index comes back, and that an index of other sizes does not fit.
func TestRuns(t *testing.T) {
	units := []Run{{1 << 20, 3, 4}, {3 << 20, 1, 5}, {3<<20 + 7, 0, 6}}
	index := AppendRuns(nil, units)
	if got, ok := ReadRuns(index, 3<<20+7, 2<<20); !ok || !reflect.DeepEqual(got, units) {
		t.Errorf("got %v, %v", got, ok)
	}
	for size := range int64(20) {
		if _, ok := ReadRuns(index, 3<<20+size, 2<<20); ok != (size == 7) {
			t.Errorf("%d bytes: %v", size, ok)
		}
	}
	for _, bad := range [][]Run{{}, {{7, 2, 1}}, {{7, 1, 1}, {7, 0, 1}}, {{-1, 0, 0}, {7, 1, 1}}, {{7, -1, 1}}, {{7, 1, 1}, {9, 1, 0}}, {{7, MaxRunRecords + 1, 1 << 20}}} {
		if _, ok := ReadRuns(AppendRuns(nil, bad), 7, 7); ok {
			t.Errorf("%v fits", bad)
		}
	}
	if _, ok := ReadRuns(index[:71], 3<<20+7, 2<<20); ok {
		t.Error("a cut index fits")
	}
}
