package packing

import "testing"

// TestPlansAreBounded: the plans that were used last stay in memory.
func TestPlansAreBounded(t *testing.T) {
	const size = 32 << 20
	var p plans
	for i := range 12 {
		p.put(i, &group{ends: make([]int64, 0, size/8)})
		if p.get(0) == nil {
			t.Errorf("plan 0 was dropped after it was used, at plan %d", i)
		}
	}
	for i := range 12 {
		if kept := p.get(i) != nil; kept != (i == 0 || i > 12-maxPlanBytes/size) {
			t.Errorf("plan %d is kept: %v", i, kept)
		}
	}
	if p.bytes != maxPlanBytes {
		t.Errorf("the plans have %d bytes", p.bytes)
	}
	if p.clear(); p.get(0) != nil || p.bytes != 0 {
		t.Error("a plan was not dropped")
	}
}
