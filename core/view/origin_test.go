package view

import "testing"

// TestMemory: rows of one call do not overlap, and later calls use the memory of earlier ones.
func TestMemory(t *testing.T) {
	var m memory
	call := func() {
		a, b := m.bytes(3), m.bytes(5)
		a[2], b[0] = 1, 2
		if len(a) != 3 || cap(a) != 3 || len(b) != 5 || a[2] != 1 {
			t.Errorf("got %v and %v", a, b)
		}
		m.reset()
	}
	call() // allocates; later calls know the size
	if n := testing.AllocsPerRun(10, call); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}
