package jsonl

import (
	"reflect"
	"testing"
)

// TestIndex checks that an index comes back, and that an index of other sizes does not fit.
func TestIndex(t *testing.T) {
	units := []Lines{{1 << 20, 3, 4}, {3 << 20, 1, 5}, {3<<20 + 7, 0, 6}}
	index := AppendIndex(nil, units)
	if got, ok := ReadIndex(index, 3<<20+7); !ok || !reflect.DeepEqual(got, units) {
		t.Errorf("got %v, %v", got, ok)
	}
	for size := range int64(20) {
		if _, ok := ReadIndex(index, 3<<20+size); ok != (size == 7) {
			t.Errorf("%d bytes: %v", size, ok)
		}
	}
	for _, bad := range [][]Lines{{}, {{7, 2, 1}}, {{7, 1, 1}, {7, 0, 1}}, {{-1, 0, 0}, {7, 1, 1}}, {{7, -1, 1}}, {{7, 1, 1}, {9, 1, 0}}, {{7, maxRecords + 1, 1 << 20}}} {
		if _, ok := ReadIndex(AppendIndex(nil, bad), 7); ok {
			t.Errorf("%v fits", bad)
		}
	}
	if _, ok := ReadIndex(index[:71], 3<<20+7); ok {
		t.Error("a cut index fits")
	}
}
