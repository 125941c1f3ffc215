package loader

import (
	"testing"
	"time"
)

// Sixteen wakes in a row, then each one, spare twice as many batches as the last
// time; one wake that displaces nobody ends all that.
func TestCrowdCounts(t *testing.T) {
	var c crowd
	for range 2 {
		for range crowded - 1 {
			if c.note(true); c.spares() {
				t.Fatal("batches are spared too early")
			}
		}
		for _, want := range []int{64, 128, 256, 512, 1024, 1024} {
			c.note(true)
			spared := 0
			for ; c.spares() && spared <= want; spared++ {
				c.made()
			}
			if spared != want {
				t.Errorf("%d batches are spared, want %d", spared, want)
			}
			c.made()
		}
		c.note(true)
		if c.note(false); c.spares() {
			t.Error("batches are spared where nobody was displaced")
		}
	}
}

// Callers give way now and then, and only where batches are left to them.
func TestYields(t *testing.T) {
	now := time.Now()
	c := crowd{}
	if c.yields(now) {
		t.Error("a caller gives way where there is no crowd")
	}
	for range crowded {
		c.note(true)
	}
	for _, s := range []struct {
		later time.Duration
		want  bool
	}{{0, true}, {longStint - 1, false}, {1, true}, {1, false}, {time.Hour, true}} {
		now = now.Add(s.later)
		if got := c.yields(now); got != s.want {
			t.Errorf("%v later: got %t, want %t", s.later, got, s.want)
		}
	}
}
